// Where pages are, and bringing them elsewhere.
//
// Errors         -1, with report() told.
// Thread safety  any thread.
#pragma once

#include <cstddef>
#include <nearfar/hmalloc.h>

namespace nearfar::alloc {

int find_residency(const void* ptr, std::size_t bytes, hm_pages& found);
int migrate(unsigned tier, unsigned long nodes);

} // namespace nearfar::alloc
