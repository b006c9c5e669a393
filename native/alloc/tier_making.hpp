// Making a tier: its memory mapped in its part of the window, or refused.
//
// Thread safety  one thread for one tier; the tier is not used yet.
#pragma once

#include "alloc/options.hpp"
#include "alloc/tier_heap.hpp"
#include "base/result.hpp"

namespace nearfar::alloc {

/// The near tier as it is before any setting is read: all of its part of the window, anonymous.
/// Nothing allocates. False if the system refuses.
bool open_plain_near();

/// Applies a specification (dram or numa) to the near tier, which is in use already.
Status adjust_near(const Options& options);

/// Maps what the options say. Errors: no_space, unsupported, not_found, exists, no_permission.
Status open_tier(unsigned tier, const Options& options);

/// The first address of a tier, and what it may span at most.
std::byte* tier_base(unsigned tier);
std::size_t tier_span_bytes();

} // namespace nearfar::alloc
