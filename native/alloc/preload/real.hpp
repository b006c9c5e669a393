// The functions of libc whose place this library takes, for memory that is not ours: what the
// loader allocated before, or another namespace of libraries.
//
// Thread safety  any thread.
#pragma once

#include <cstddef>

namespace nearfar::alloc {

void real_free(void* ptr);
std::size_t real_usable_size(void* ptr);

} // namespace nearfar::alloc
