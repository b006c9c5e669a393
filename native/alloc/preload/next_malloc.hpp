// The functions of libc that this library replaces, for blocks of libc: those that the loader
// allocated before, or another namespace of libraries.
//
// Thread safety  any thread.
#pragma once

#include <cstddef>

namespace nearfar::alloc {

void next_free(void* ptr);
std::size_t next_usable_size(void* ptr);

} // namespace nearfar::alloc
