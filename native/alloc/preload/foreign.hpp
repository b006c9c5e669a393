// Blocks of libc's malloc, from libraries opened with RTLD_DEEPBIND or from dlsym(). libc frees
// them, but it may accept an invalid pointer (such as a stack address preceded by a plausible
// size); invalid pointers therefore abort here.
//
// Source         the layout described in glibc's malloc/malloc.c and arena.c ("malloc_chunk",
//                "heap_info"), the same since glibc 2.26.
// Thread safety  any thread; nothing here allocates.
#pragma once

namespace nearfar::alloc {

/// Whether `ptr`, an address outside the window, may be a live block of glibc's malloc: aligned, in
/// an arena or in a mapping of its own, with valid size and next header. Takes about a microsecond.
/// Blocks of a main arena that could not grow by brk() are not recognized.
bool may_be_libc_block(const void* ptr);

/// Aborts if `ptr`, passed to `call`, cannot be a block of libc.
void require_libc_block(const char* call, const void* ptr);

} // namespace nearfar::alloc
