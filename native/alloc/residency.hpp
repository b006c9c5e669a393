// Finds the nodes of pages, and moves pages.
//
// Errors         -1, with the message set by set_error().
// Thread safety  any thread.
#pragma once

#include <cstddef>
#include <nearfar/hmalloc.h>

#include "alloc/tier_heap.hpp"

namespace nearfar::alloc {

int find_residency(const void* ptr, std::size_t bytes, hm_pages& found);
int migrate(TierHeap& tier, unsigned long nodes);

} // namespace nearfar::alloc
