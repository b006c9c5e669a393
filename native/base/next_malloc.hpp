// SPDX-License-Identifier: MIT (native/trace/recorder/LICENSE), as malloc_entry_points.hpp.
//
// The program's own malloc, for a library that observes it: the functions that the program would
// call without the library.
//
// Early calls    dlsym() may allocate; libc's functions serve until the look-up is complete.
// Thread safety  any thread. Two threads may look up at once; both find the same.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <dlfcn.h>

#include "base/library_new.hpp"

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
}

namespace nearfar {

/// The functions of an allocator.
struct NextMalloc {
  void* (*malloc)(std::size_t);
  void* (*calloc)(std::size_t, std::size_t);
  void* (*realloc)(void*, std::size_t);
  void* (*memalign)(std::size_t, std::size_t);
  void (*free)(void*);
};

namespace next_malloc_detail {

inline NextMalloc libc_malloc = {__libc_malloc, __libc_calloc, __libc_realloc, __libc_memalign,
                                 __libc_free};
inline NextMalloc program_malloc;
inline std::atomic<bool> is_found{false};
inline thread_local bool looking_up [[gnu::tls_model("initial-exec")]] = false;

template <class Function>
void look_up(Function*& function, const char* name, Function* fallback) {
  auto* found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  function = found != nullptr ? found : fallback;
}

[[gnu::noinline, gnu::cold]] inline const NextMalloc& look_up_program_malloc() {
  if (looking_up) return libc_malloc;
  looking_up = true;
  look_up(program_malloc.malloc, "malloc", libc_malloc.malloc);
  look_up(program_malloc.calloc, "calloc", libc_malloc.calloc);
  look_up(program_malloc.realloc, "realloc", libc_malloc.realloc);
  look_up(program_malloc.memalign, "memalign", libc_malloc.memalign);
  look_up(program_malloc.free, "free", libc_malloc.free);
  looking_up = false;
  is_found.store(true, std::memory_order_release);
  return program_malloc;
}

} // namespace next_malloc_detail

[[gnu::always_inline]] inline const NextMalloc& next_malloc() {
  using namespace next_malloc_detail;
  return is_found.load(std::memory_order_acquire) ? program_malloc : look_up_program_malloc();
}

/// operator new of the C++ library, which calls the new handler and throws. `alignment` is 0 for
/// the unaligned form.
inline void* call_library_new(std::size_t bytes, std::size_t alignment) {
  using New = void* (*)(std::size_t);
  using AlignedNew = void* (*)(std::size_t, std::size_t);
  void* function = dlsym(RTLD_NEXT, alignment == 0 ? "_Znwm" : "_ZnwmSt11align_val_t");
  if (function == nullptr) std::abort();
  return alignment == 0 ? reinterpret_cast<New>(function)(bytes)
                        : reinterpret_cast<AlignedNew>(function)(bytes, alignment);
}

} // namespace nearfar
