// SPDX-License-Identifier: MIT (native/trace/recorder/LICENSE), as malloc_entry_points.hpp.
//
// operator new of the C++ library, for a library that replaces it: handles exhausted memory as the
// standard requires.
//
// Thread safety  any thread.
#pragma once

#include <cstddef>
#include <dlfcn.h>
#include <new>

namespace nearfar {

/// operator new(nothrow) of the C++ library, which calls operator new and catches what a new
/// handler throws. `alignment` is 0 for the unaligned form. Returns nullptr if the program has no
/// C++ library, and therefore no new handler.
inline void* call_library_nothrow_new(std::size_t size, std::size_t alignment) {
  using New = void* (*)(std::size_t, const std::nothrow_t&) noexcept;
  using AlignedNew = void* (*)(std::size_t, std::align_val_t, const std::nothrow_t&) noexcept;
  if (alignment == 0) {
    const auto library = reinterpret_cast<New>(dlsym(RTLD_NEXT, "_ZnwmRKSt9nothrow_t"));
    return library == nullptr ? nullptr : library(size, std::nothrow_t{});
  }
  const auto library =
      reinterpret_cast<AlignedNew>(dlsym(RTLD_NEXT, "_ZnwmSt11align_val_tRKSt9nothrow_t"));
  return library == nullptr
             ? nullptr
             : library(size, static_cast<std::align_val_t>(alignment), std::nothrow_t{});
}

} // namespace nearfar
