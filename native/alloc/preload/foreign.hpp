// Blocks of libc's own malloc that reach a program under the preloaded library: from a library
// opened with RTLD_DEEPBIND, or by dlsym() in libc. They go back to libc. What is no block of
// libc's either could be put into its free lists without a word (a pointer to the stack, where what
// lies before it looks like a size), so it ends the process here.
//
// Source         what is checked is the layout that glibc's malloc/malloc.c and arena.c describe
//                ("malloc_chunk", "heap_info"), the same since glibc 2.26.
// Thread safety  any thread; nothing here allocates.
#pragma once

namespace nearfar::alloc {

/// Whether `ptr`, no address of the window, may be a live block of glibc's malloc: aligned, in an
/// arena or mapped for itself, its size and the header behind it sound. Takes about a microsecond.
/// Blocks of a main arena that could not grow by brk() are not recognised.
bool may_be_of_libc(const void* ptr);

/// Says that `call` was given a pointer that is of no heap, and aborts, unless it may be libc's.
void expect_of_libc(const char* call, const void* ptr);

} // namespace nearfar::alloc
