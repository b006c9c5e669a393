#include "tier/spec.hpp"

#include <cstdlib>
#include <cstring>
#include <string_view>

namespace nearfar::tier {

namespace {

constexpr const char* grammar = "tiers are dram, numa:N, fsdax:PATH, devdax:/dev/daxX.Y, shm:DIR, "
                                "file:PATH, paced:TIER@PROFILE, then ,pages=4k|2m|1g|thp "
                                ",populate";

struct KindName {
  std::string_view name;
  Kind kind;
};
constexpr KindName kinds[] = {{"dram", Kind::dram},   {"numa", Kind::numa},
                              {"fsdax", Kind::fsdax}, {"devdax", Kind::devdax},
                              {"shm", Kind::shm},     {"file", Kind::file}};

struct PagesName {
  std::string_view name;
  os::PageSize pages;
};
constexpr PagesName page_sizes[] = {{"4k", os::PageSize::small_4k},
                                    {"2m", os::PageSize::huge_2m},
                                    {"1g", os::PageSize::huge_1g},
                                    {"thp", os::PageSize::transparent_huge}};

Error refuse(const char* complaint, std::string_view part) {
  return Error::make(Errc::bad_input, "%s '%.*s'", complaint, static_cast<int>(part.size()),
                     part.data())
      .try_next("%s", grammar);
}

Status read_option(std::string_view option, Spec& spec) {
  if (option == "populate") {
    spec.populate = true;
    return Done{};
  }
  constexpr std::string_view pages_key = "pages=";
  if (!option.starts_with(pages_key)) return refuse("unknown tier option", option);
  std::string_view size = option;
  size.remove_prefix(pages_key.size());
  for (const PagesName& p : page_sizes)
    if (size == p.name) {
      spec.pages = p.pages;
      return Done{};
    }
  return refuse("unknown page size", size);
}

Status read_node(std::string_view argument, Spec& spec) {
  if (argument.empty() || argument.size() > 4 ||
      argument.find_first_not_of("0123456789") != std::string_view::npos)
    return refuse("not a NUMA node number", argument);
  spec.node = std::atoi(argument.data()); // what follows is a comma or the end
  return Done{};
}

Status read_path(std::string_view argument, Spec& spec) {
  if (argument.empty()) {
    if (spec.kind != Kind::shm) return refuse("a path is missing after", kind_name(spec.kind));
    argument = "/dev/shm";
  }
  if (argument.size() >= sizeof spec.path) return refuse("path too long", argument);
  std::memcpy(spec.path, argument.data(), argument.size());
  spec.path[argument.size()] = '\0';
  return Done{};
}

Status read_argument(bool colon, std::string_view argument, Spec& spec) {
  switch (spec.kind) {
  case Kind::dram:
    if (colon) return refuse("dram takes no argument, but was given", argument);
    return Done{};
  case Kind::numa: return read_node(argument, spec);
  default: return read_path(argument, spec);
  }
}

/// Takes `paced:` and `@PROFILE` off a head.
Result<std::string_view> read_pace(std::string_view head, Spec& spec) {
  constexpr std::string_view prefix = "paced:";
  if (head.substr(0, prefix.size()) != prefix) return head;
  head.remove_prefix(prefix.size());
  const std::size_t at = head.rfind('@');
  if (at == head.npos || at + 1 == head.size())
    return refuse("a device profile is missing, such as @optane-100, after", head);
  std::string_view profile = head; // its end; substr() would want the C++ runtime
  profile.remove_prefix(at + 1);
  if (profile.size() >= sizeof spec.profile) return refuse("profile name too long", profile);
  std::memcpy(spec.profile, profile.data(), profile.size());
  spec.profile[profile.size()] = '\0';
  return head.substr(0, at);
}

} // namespace

bool same_memory(const Spec& a, const Spec& b) {
  return a.kind == b.kind && a.node == b.node && std::strcmp(a.path, b.path) == 0 &&
         std::strcmp(a.profile, b.profile) == 0 && a.pace == b.pace;
}

const char* kind_name(Kind kind) {
  for (const KindName& k : kinds)
    if (k.kind == kind) return k.name.data();
  return "dram";
}

Result<Spec> parse(const char* text) {
  const std::string_view whole(text);
  std::string_view rest = whole;
  const std::string_view whole_head = rest.substr(0, rest.find(','));
  rest.remove_prefix(whole_head.size());
  Spec spec;
  Result<std::string_view> unpaced = read_pace(whole_head, spec);
  if (!unpaced) return unpaced.error();
  const std::string_view head = *unpaced;
  const std::size_t colon = head.find(':');
  const std::string_view name = head.substr(0, colon);
  std::string_view argument = head; // what follows the colon; substr() would want the C++ runtime
  argument.remove_prefix(colon == head.npos ? head.size() : colon + 1);

  bool known = false;
  for (const KindName& k : kinds)
    if (k.name == name) {
      spec.kind = k.kind;
      known = true;
    }
  if (!known) return refuse("unknown tier", whole);
  if (Status s = read_argument(colon != head.npos, argument, spec); !s) return s.error();
  while (!rest.empty()) {
    rest.remove_prefix(1); // the comma
    const std::string_view option = rest.substr(0, rest.find(','));
    if (Status s = read_option(option, spec); !s) return s.error();
    rest.remove_prefix(option.size());
  }
  return spec;
}

} // namespace nearfar::tier
