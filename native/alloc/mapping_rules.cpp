#include "alloc/mapping_rules.hpp"

#include <cstring>
#include <initializer_list>

#include "os/objects.hpp"

namespace nearfar::alloc {

namespace {

bool chain_matches(const MappingRule& rule, const MappingOrigin& origin) {
  if (rule.chain_length > origin.chain_length) return false;
  for (std::size_t i = 0; i < rule.chain_length; ++i)
    if (rule.chain_addresses[i] == 0 || rule.chain_addresses[i] != origin.chain[i]) return false;
  return true;
}

bool kind_matches(const MappingRule& rule, const MappingOrigin& origin) {
  switch (rule.kind) {
  case MappedKind::by_site: return chain_matches(rule, origin);
  case MappedKind::anonymous:
  case MappedKind::heap: return origin.kind == rule.kind;
  case MappedKind::file:
    return origin.kind == rule.kind && std::strcmp(origin.name, rule.object.name) == 0;
  case MappedKind::globals:
    return origin.object != nullptr && is_named(*origin.object, rule.object);
  case MappedKind::named:
  case MappedKind::unknown: break;
  }
  return false;
}

/// `offset` bytes behind the beginning of the origin, at the page before or behind.
std::uintptr_t page_at(const MappingOrigin& origin, std::uint64_t offset, std::size_t page_bytes,
                       bool behind) {
  std::uint64_t address = 0;
  if (__builtin_add_overflow(origin.begin, offset, &address) || address > UINT64_MAX - page_bytes)
    return UINT64_MAX;
  return (behind ? address + page_bytes - 1 : address) & ~(page_bytes - 1);
}

} // namespace

bool matches(const MappingRule& rule, const MappingOrigin& origin) {
  return origin.bytes >= rule.min_bytes && origin.bytes <= rule.max_bytes &&
         (rule.at == 0 || rule.at == origin.begin) && kind_matches(rule, origin);
}

MappingPart next_part(const MappingRules& rules, const MappingOrigin& own,
                      const MappingOrigin* outer, std::uintptr_t at, std::uintptr_t limit,
                      std::size_t page_bytes) {
  for (MappingRule& rule : rules)
    for (const MappingOrigin* origin : {&own, outer}) {
      if (origin == nullptr || !matches(rule, *origin)) continue;
      const std::uintptr_t first = page_at(*origin, rule.from, page_bytes, false);
      const std::uintptr_t last = page_at(*origin, rule.to, page_bytes, true);
      if (at >= first && at < last) return {&rule, last < limit ? last : limit};
      if (first > at && first < limit) limit = first;
    }
  return {nullptr, limit};
}

void resolve_frames(const MappingRules& rules, const os::Object& object) {
  for (const MappingRule& rule : rules)
    for (std::size_t i = 0; i < rule.chain_length; ++i)
      if (is_named(object, rule.chain[i].object))
        rule.chain_addresses[i] = object.base + rule.chain[i].offset;
}

void forget_frames(const MappingRules& rules) {
  for (const MappingRule& rule : rules)
    std::memset(rule.chain_addresses, 0, rule.chain_length * sizeof *rule.chain_addresses);
}

} // namespace nearfar::alloc
