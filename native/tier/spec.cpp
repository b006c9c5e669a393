#include "tier/spec.hpp"

#include <cstdio>
#include <cstring>
#include <string_view>

namespace nearfar::tier {

namespace {

struct PagesName {
  std::string_view name;
  os::PageSize pages;
};
constexpr PagesName page_sizes[] = {{"4k", os::PageSize::small_4k},
                                    {"2m", os::PageSize::huge_2m},
                                    {"1g", os::PageSize::huge_1g},
                                    {"thp", os::PageSize::transparent_huge}};

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

/// Reads the text after the colon of a head, if it has one.
Status read_argument(std::string_view head, std::string_view argument, Spec& spec) {
  if (spec.kind->read != nullptr) return spec.kind->read(argument, spec);
  if (head.find(':') == head.npos) return Done{};
  char complaint[80];
  std::snprintf(complaint, sizeof complaint, "%s takes no argument, but was given",
                spec.kind->name);
  return refuse(complaint, argument);
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

  spec.kind = find_kind(name);
  if (spec.kind == nullptr) return refuse("unknown tier", whole);
  if (Status s = read_argument(head, argument, spec); !s) return s.error();
  while (!rest.empty()) {
    rest.remove_prefix(1); // the comma
    const std::string_view option = rest.substr(0, rest.find(','));
    if (Status s = read_option(option, spec); !s) return s.error();
    rest.remove_prefix(option.size());
  }
  return spec;
}

} // namespace nearfar::tier
