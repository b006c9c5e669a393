// Opening and closing tiers: memory mapped in a tier's slot of the window, or an error.
//
// Thread safety  under tiers_lock(); the tier is not used yet, or no longer.
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

/// A tier that is being made in a free slot. Unless keep() is called, the destructor undoes all of
/// it: mapping, pages, memory policy, descriptor and state.
class TierOpening {
public:
  explicit TierOpening(unsigned tier);
  TierOpening(const TierOpening&) = delete;
  TierOpening& operator=(const TierOpening&) = delete;
  ~TierOpening();

  /// Maps what the options specify. Errors: no_space, unsupported, not_found, exists,
  /// no_permission.
  Status open(const Options& options);
  /// Publishes the tier: it is ready.
  void keep();

private:
  Status map(const Options& options, std::size_t bytes);

  unsigned tier_;
  Medium medium_;
  bool kept_ = false;
};

/// In the child of a fork: closes a tier that the child does not get. Its memory is inaccessible,
/// its blocks can still be freed, and its addresses are never handed out again.
void remove_tier(unsigned tier);

/// The first address of a tier, and how many bytes it spans at most.
std::byte* tier_base(unsigned tier);
std::size_t tier_span_bytes(unsigned tier);

} // namespace nearfar::alloc
