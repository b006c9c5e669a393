// Rules of a plan for memory that the program maps, and for its global variables
// (docs/formats/plan.md).
//
// A mapping is known by its origin: the call that made it, where it begins, what it maps. Rules are
// tried in order for each byte; the first that matches decides.
//
// Thread safety  values; PlacedMappings guards the addresses of frames.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "alloc/site_frame.hpp"

namespace nearfar::alloc {

struct RuleStatistics;

enum class MappedKind : std::uint8_t {
  by_site,   ///< of rules alone: the mapping's call site decides
  anonymous, ///< private, without a file
  heap,      ///< by brk()
  named,     ///< by prctl(PR_SET_VMA), unknown when memory is mapped
  file,      ///< also shared memory
  globals,   ///< .data and .bss of an object
  unknown,   ///< of mappings alone: a resized mapping that no rule matched before
};

inline constexpr std::size_t mapped_name_bytes = 64; ///< with the final zero

struct MappingRule {
  std::uint32_t number = 0; ///< among all rules of the plan, from 1
  int tier = 0;
  MappedKind kind = MappedKind::by_site;
  std::uint8_t chain_length = 0;
  const SiteFrame* chain = nullptr;          ///< innermost first
  std::uintptr_t* chain_addresses = nullptr; ///< 0: the object is not loaded
  ObjectName object;                         ///< of globals; its name is also that of a file
  std::uint64_t min_bytes = 0, max_bytes = UINT64_MAX; ///< of the mapping
  std::uint64_t at = 0;                                ///< where it begins, 0: anywhere
  std::uint64_t from = 0, to = UINT64_MAX;             ///< bytes from the beginning
  std::atomic<std::int64_t> live_bytes{0};
  RuleStatistics* statistics = nullptr; ///< if rules are counted
};

struct MappingRules {
  MappingRule* rules = nullptr;
  std::uint32_t count = 0;
  std::uint8_t longest = 0;    ///< longest chain of any rule
  bool has_mappings = false;   ///< any kind but globals
  bool has_files = false;      ///< names of files have to be read
  bool are_positional = false; ///< some depend on size or address of a mapping

  MappingRule* begin() const { return rules; }
  MappingRule* end() const { return rules + count; }
};

/// Properties of a mapping that rules compare.
struct MappingOrigin {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  MappedKind kind = MappedKind::unknown;
  std::uint8_t chain_length = 0;
  std::uintptr_t chain[longest_chain] = {}; ///< return addresses, innermost first
  char name[mapped_name_bytes] = "";        ///< of a file
  const os::Object* object = nullptr;       ///< of globals, while they are placed

  std::uintptr_t end() const { return begin + bytes; }
};

bool matches(const MappingRule& rule, const MappingOrigin& origin);

/// Bytes that one rule decides, or none.
struct MappingPart {
  MappingRule* rule = nullptr;
  std::uintptr_t end = 0;
};
/// The part that begins at `at` and has `limit` as its latest end. `outer` is the earlier mapping
/// that `own` replaces a part of, or nullptr: its rules apply too. Parts are multiples of
/// `page_bytes`.
MappingPart next_part(const MappingRules& rules, const MappingOrigin& own,
                      const MappingOrigin* outer, std::uintptr_t at, std::uintptr_t limit,
                      std::size_t page_bytes);

/// Sets the addresses of all frames in an object.
void resolve_frames(const MappingRules& rules, const os::Object& object);
void forget_frames(const MappingRules& rules);

} // namespace nearfar::alloc
