// The kernel's calls that map memory, with the parameters, results and errno of libc's functions:
// for a library that replaces those, as long as it has not found the next ones.
//
// Thread safety  any thread; async-signal-safe.
// Freestanding   no exceptions, no C++ runtime; nothing allocates.
#pragma once

#include <cstddef>
#include <sys/types.h>

namespace nearfar::os {

void* call_mmap(void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset);
/// `target` is passed on whether MREMAP_FIXED is set or not.
void* call_mremap(void* old, std::size_t old_bytes, std::size_t bytes, int flags, void* target);
int call_munmap(void* at, std::size_t bytes);

} // namespace nearfar::os
