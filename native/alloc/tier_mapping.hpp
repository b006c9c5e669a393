// Maps and unmaps the memory of a tier in its slot of the window.
//
// Thread safety  under Allocator::tiers_lock, while the tier is not in use; advise_pages() and
//                move_to_nodes() also while it is.
#pragma once

#include "alloc/tier_heap.hpp"
#include "alloc/tier_options.hpp"
#include "base/result.hpp"

namespace nearfar::alloc {

/// The capacity in bytes: as specified; else, of files, devices and bound nodes, the free space; else 0,
/// which means unlimited. Errors: no_space, and those of the tier's kind.
Result<std::size_t> tier_capacity(const TierHeap& tier, const TierOptions& options);

/// Maps `bytes` as specified and describes them in tier.runs.backing(), on failure too.
Status map_tier(TierHeap& tier, const TierOptions& options, std::size_t bytes);
/// Makes the slot as it was before map_tier(): inaccessible, without pages and policy.
void unmap_tier(TierHeap& tier);

/// Sets the memory policy of a tier in use and moves its pages there.
Status move_to_nodes(const TierHeap& tier, const TierOptions& options);
void advise_pages(std::byte* base, std::size_t bytes, const TierOptions& options);

} // namespace nearfar::alloc
