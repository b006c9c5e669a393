// libc's own free() and malloc_usable_size(), for blocks that this library did not allocate.
//
// Thread safety  any thread.
#pragma once

#include <cstddef>

namespace nearfar::alloc {

void next_free(void* ptr);
std::size_t next_usable_size(void* ptr);

} // namespace nearfar::alloc
