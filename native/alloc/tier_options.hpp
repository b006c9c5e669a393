// Options of a tier: its memory, its policy, and what happens when it is full or the process forks.
//
// Grammar        that of tiers (tier/spec.hpp) with the options documented at hm_tier_create().
// Thread safety  any thread; the functions share no data.
// Freestanding   no exceptions, no C++ runtime; nothing allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.hpp"
#include "os/numa.hpp"
#include "tier/spec.hpp"

namespace nearfar::alloc {

inline constexpr std::size_t tier_name_bytes = 32; ///< with the final zero

enum class Reserve : std::uint8_t { sparse, chunk, full };
enum class ForkPolicy : std::uint8_t { make_private, copy, deny };

/// The options that decide on which NUMA nodes pages are.
struct NodePolicy {
  os::Policy policy = os::Policy::local;
  unsigned long nodes = 0;
  /// Pages of each node in turns; 0: the kernel's weights, or the policy does not interleave.
  std::uint8_t weights[os::max_nodes] = {};
  bool has_weights = false;
};

struct TierOptions : NodePolicy {
  tier::Spec spec;
  std::uint64_t capacity = 0;          ///< bytes, 0: not specified
  char spill_to[tier_name_bytes] = ""; ///< empty: fail
  Reserve reserve = Reserve::chunk;
  ForkPolicy fork = ForkPolicy::make_private;

  bool maps_file() const { return spec.kind->maps != tier::Maps::memory; }
};

/// Parses a specification. Errors: bad_input with the invalid part.
Result<TierOptions> parse_tier_options(std::string_view text);

/// Parses a size: digits, a fraction, a unit. K, M, G, T and KiB to TiB are binary; KB (or kB) to TB
/// are decimal. Returns false if it is invalid or too large.
bool parse_size(std::string_view text, std::uint64_t& bytes);

inline constexpr char tier_name_rule[] = "must be 1 to 31 letters, digits, - or _";
/// Whether a name obeys tier_name_rule.
bool is_tier_name(std::string_view name);

} // namespace nearfar::alloc
