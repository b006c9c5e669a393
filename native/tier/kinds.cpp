#include "tier/kinds.hpp"

#include <cstdio>
#include <cstring>

namespace nearfar::tier {

namespace {

constexpr const TierKind* all[] = {
#define NEARFAR_TIER(name) &name##_kind,
#include "tier/kinds.inc"
#undef NEARFAR_TIER
};

/// Forms of all kinds, memory first, then files, then devices.
void write_grammar(char* text, std::size_t bytes) {
  int length = std::snprintf(text, bytes, "tiers are ");
  for (const Maps maps : {Maps::memory, Maps::file, Maps::device})
    for (const TierKind* kind : all)
      if (const std::size_t used = static_cast<std::size_t>(length); kind->maps == maps)
        if (used < bytes) length += std::snprintf(text + used, bytes - used, "%s, ", kind->form);
}

} // namespace

const TierKind* find_kind(std::string_view name) {
  for (const TierKind* kind : all)
    if (kind->name == name) return kind;
  return nullptr;
}

Error refuse(const char* complaint, std::string_view part) {
  constexpr std::size_t rest = 60; // of the sentence
  char grammar[sizeof Error::next - rest];
  write_grammar(grammar, sizeof grammar);
  return Error::make(Errc::bad_input, "%s '%.*s'", complaint, static_cast<int>(part.size()),
                     part.data())
      .try_next("%spaced:TIER@PROFILE, then ,pages=4k|2m|1g|thp ,populate", grammar);
}

Status read_path(std::string_view argument, Spec& spec) {
  if (argument.empty()) return refuse("a path is missing after", spec.kind->name);
  if (argument.size() >= sizeof spec.path) return refuse("path too long", argument);
  std::memcpy(spec.path, argument.data(), argument.size());
  spec.path[argument.size()] = '\0';
  return Done{};
}

Result<std::size_t> free_space(const Spec& spec) {
  if (Status s = os::check_directory(spec.path); !s) return s.error();
  return os::free_space(spec.path);
}

Result<os::File> create_unnamed(const Spec& spec) { return os::create_unnamed(spec.path); }

} // namespace nearfar::tier
