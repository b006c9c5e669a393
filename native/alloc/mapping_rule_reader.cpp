#include "alloc/mapping_rule_reader.hpp"

#include <cstring>

#include "alloc/metadata.hpp"
#include "alloc/plan_words.hpp"
#include "os/address_space.hpp"

namespace nearfar::alloc {

namespace {

Error refuse(const char* complaint, std::string_view part) {
  constexpr int max_shown = 80;
  return Error::make(Errc::bad_input, "%s '%.*s'", complaint,
                     part.size() < max_shown ? static_cast<int>(part.size()) : max_shown,
                     part.data());
}

bool read_name(std::string_view value, MappedKind kind, MappingRule& rule) {
  if (value.empty() || value.size() >= sizeof rule.object.name) return false;
  std::memcpy(rule.object.name, value.data(), value.size());
  rule.kind = kind;
  return true;
}

bool read_chain(std::string_view value, MappingRule& rule) {
  SiteFrame frames[longest_chain];
  std::size_t count = 0;
  if (!parse_frames(value, frames, count)) return false;
  void* chain = allocate_metadata(count * sizeof(SiteFrame));
  void* addresses = allocate_metadata(count * sizeof(std::uintptr_t));
  if (chain == nullptr || addresses == nullptr) return false;
  std::memcpy(chain, frames, count * sizeof(SiteFrame));
  std::memset(addresses, 0, count * sizeof(std::uintptr_t));
  rule.kind = MappedKind::by_site;
  rule.chain = static_cast<const SiteFrame*>(chain);
  rule.chain_addresses = static_cast<std::uintptr_t*>(addresses);
  rule.chain_length = static_cast<std::uint8_t>(count);
  return true;
}

bool read_map(std::string_view value, MappingRule& rule) {
  if (value == "anonymous" || value == "heap") {
    rule.kind = value == "heap" ? MappedKind::heap : MappedKind::anonymous;
    return true;
  }
  // Frames first: name:FILE+0xOFFSET is one of an object without a build ID.
  if (read_chain(value, rule)) return true;
  if (take_prefix(value, "name:")) return read_name(value, MappedKind::named, rule);
  return take_prefix(value, "file:") && read_name(value, MappedKind::file, rule);
}

bool read_globals(std::string_view value, MappingRule& rule) {
  rule.kind = MappedKind::globals;
  return parse_object(value, rule.object);
}

bool read_sizes(std::string_view value, MappingRule& rule) {
  return parse_size_range(value, rule.min_bytes, rule.max_bytes);
}

bool read_address(std::string_view value, MappingRule& rule) {
  return parse_hex(value, rule.at) && rule.at != 0 && rule.at % os::page_bytes == 0;
}

bool read_range(std::string_view value, MappingRule& rule) {
  return parse_size_range(value, rule.from, rule.to) && rule.from < rule.to;
}

struct Condition {
  std::string_view word;
  bool (*read)(std::string_view value, MappingRule& rule);
};
constexpr Condition conditions_of_rules[] = {
    {"map=", read_map},    {"globals=", read_globals}, {"size=", read_sizes},
    {"at=", read_address}, {"range=", read_range},
};
constexpr unsigned what_is_mapped = 3; ///< bits of map= and globals=, of which a rule has one

constexpr std::string_view of_blocks[] = {"site=", "budget=", "ratio=", "thread="};

/// `seen` has a bit for each kind of condition that the rule has.
Status read_condition(std::string_view word, MappingRule& rule, unsigned& seen) {
  std::string_view value = word;
  unsigned kind = 1;
  for (const Condition& condition : conditions_of_rules) {
    if (take_prefix(value, condition.word)) {
      const unsigned excluded = (kind & what_is_mapped) != 0 ? what_is_mapped : kind;
      if ((seen & excluded) != 0) return refuse("duplicate condition", word);
      seen |= kind;
      if (!condition.read(value, rule)) return refuse("invalid condition", word);
      return Done{};
    }
    kind <<= 1;
  }
  for (const std::string_view prefix : of_blocks)
    if (word.starts_with(prefix))
      return refuse("map= and globals= can have size=, at= and range=, but not", word);
  return refuse("expected size=, at= or range= with map= or globals=, not", word);
}

} // namespace

bool is_mapping_rule(std::string_view conditions) {
  for (std::string_view word = next_word(conditions); !word.empty(); word = next_word(conditions))
    if (word.starts_with("map=") || word.starts_with("globals=")) return true;
  return false;
}

Status read_mapping_rule(std::string_view conditions, MappingRule& rule, MappingRules& rules) {
  unsigned seen = 0;
  for (std::string_view word = next_word(conditions); !word.empty(); word = next_word(conditions))
    if (Status s = read_condition(word, rule, seen); !s) return s.error();
  if (rule.chain_length > rules.longest) rules.longest = rule.chain_length;
  if (rule.kind != MappedKind::globals) rules.has_mappings = true;
  if (rule.kind == MappedKind::file) rules.has_files = true;
  if ((seen & ~what_is_mapped) != 0) rules.are_positional = true;
  return Done{};
}

} // namespace nearfar::alloc
