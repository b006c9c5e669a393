// The functions of the next library that maps memory: libc's own, or those of another preloaded
// library. Before this library's constructor, the kernel's calls.
//
// Thread safety  any thread; async-signal-safe after the constructor, but brk() and sbrk().
#pragma once

#include <cstddef>
#include <cstdint>
#include <sys/types.h>

namespace nearfar::alloc {

void* next_mmap(void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset);
void* next_mremap(void* old, std::size_t old_bytes, std::size_t bytes, int flags, void* target);
int next_munmap(void* at, std::size_t bytes);
int next_brk(void* end);
void* next_sbrk(std::intptr_t change);

} // namespace nearfar::alloc
