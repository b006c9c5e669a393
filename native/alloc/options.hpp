// What is said of a tier: its medium, its policy, and what happens when it is full or forked.
//
// Grammar        that of tiers (tier/spec.hpp) with the options told at hm_tier_create().
// Freestanding   no exceptions, no C++ runtime; nothing allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.hpp"
#include "os/numa.hpp"
#include "tier/spec.hpp"

namespace nearfar::alloc {

inline constexpr std::size_t name_bytes = 32; ///< of a tier, with the final zero

enum class Reserve : std::uint8_t { sparse, chunk, full };
enum class ForkPolicy : std::uint8_t { make_private, copy, deny };

struct Options {
  tier::Spec spec;
  os::Policy policy = os::Policy::local;
  unsigned long nodes = 0;
  std::uint64_t capacity = 0;     ///< bytes, 0 where none was told
  char spill_to[name_bytes] = ""; ///< empty: fail
  Reserve reserve = Reserve::chunk;
  ForkPolicy fork = ForkPolicy::make_private;

  bool in_file() const { return spec.kind->maps != tier::Maps::memory; }
};

/// Reads a specification. Errors: bad_input, with the part that is wrong.
Result<Options> parse_options(std::string_view text);

/// Reads a size: digits, a fraction, a unit (B, K, M, G, T; KiB, kB and so on). False if it is
/// none, or does not fit.
bool parse_size(std::string_view text, std::uint64_t& bytes);

/// Whether a name of a tier is one: 1 to 31 letters, digits, '-' or '_'.
bool good_name(std::string_view name);

} // namespace nearfar::alloc
