// SPDX-License-Identifier: MIT (native/trace/recorder/LICENSE), because the recorder's library
// includes it, which is loaded into programs under any license.
//
// The entry points of malloc: all functions that glibc and libstdc++ define to allocate and free,
// those of C23, and reallocarr() of NetBSD, each written once in terms of a type with static functions. A library that replaces malloc
// includes this file in one source file, after it has defined
//
//   #define NEARFAR_MALLOC Implementation
//   struct Implementation {
//     static void* allocate(std::size_t bytes, nearfar::CallSite site);
//     static void* allocate_zeroed(std::size_t count, std::size_t bytes, nearfar::CallSite site);
//     static void* allocate_aligned(std::size_t alignment, std::size_t bytes,
//                                   nearfar::CallSite site);
//     static void* reallocate(void* block, std::size_t bytes, nearfar::CallSite site);
//     static void release(void* block);
//     static void release_sized(void* block, std::size_t bytes); // default alignment
//     // Called when allocation for operator new failed. `alignment` is 0 for the unaligned forms.
//     // new_failed() throws or returns a block; nothrow_new_failed() may return nullptr. Both call
//     // the new handler.
//     static void* new_failed(std::size_t bytes, std::size_t alignment, nearfar::CallSite site);
//     static void* nothrow_new_failed(std::size_t bytes, std::size_t alignment);
//   };
//   #define NEARFAR_MALLOC_CACHED Implementation::FUNCTION
//
// The last is optional: FUNCTION(bytes) returns a block, or nullptr if it has none or needs the call
// site. malloc() and operator new call it first, and have no frame while it succeeds.
//
// Functions that neither allocate nor free (malloc_usable_size) are not here: the preload library
// defines them, and under the shim they reach the program's allocator.
//
// Errors         nullptr with errno; allocate_aligned() rejects an alignment that is not a power of
//                two, or rounds it up, as glibc does.
// Inlining       functions with a CallSite should be always inlined. Compile the file with
//                -fno-omit-frame-pointer, so that callers' frames can be found.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "base/call_site.hpp"

#ifdef NEARFAR_MALLOC_CACHED
namespace nearfar {
/// Called last by malloc(), so that return address and frame are those of malloc().
[[gnu::noinline]] inline void* allocate_by_site(std::size_t bytes) {
  return NEARFAR_MALLOC::allocate(bytes, NEARFAR_CALL_SITE);
}
} // namespace nearfar
#endif

extern "C" {

NEARFAR_ENTRY_POINT void* malloc(std::size_t bytes) noexcept {
#ifdef NEARFAR_MALLOC_CACHED
  if (void* block = NEARFAR_MALLOC_CACHED(bytes); block != nullptr) [[likely]]
    return block;
  return nearfar::allocate_by_site(bytes);
#else
  return NEARFAR_MALLOC::allocate(bytes, NEARFAR_CALL_SITE);
#endif
}

NEARFAR_ENTRY_POINT void* calloc(std::size_t count, std::size_t bytes) noexcept {
  return NEARFAR_MALLOC::allocate_zeroed(count, bytes, NEARFAR_CALL_SITE);
}

NEARFAR_ENTRY_POINT void* realloc(void* block, std::size_t bytes) noexcept {
  return NEARFAR_MALLOC::reallocate(block, bytes, NEARFAR_CALL_SITE);
}

NEARFAR_ENTRY_POINT void* reallocarray(void* block, std::size_t count, std::size_t bytes) noexcept {
  std::size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) {
    errno = ENOMEM;
    return nullptr;
  }
  return NEARFAR_MALLOC::reallocate(block, all, NEARFAR_CALL_SITE);
}

/// `block` is the address of a pointer. Returns an errno and preserves errno; on failure the block
/// is unchanged. A product of 0 frees it and stores nullptr.
NEARFAR_ENTRY_POINT int reallocarr(void* block, std::size_t count, std::size_t bytes) noexcept {
  std::size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) return EOVERFLOW;
  const int saved_errno = errno;
  void* old = nullptr;
  std::memcpy(&old, block, sizeof old);
  void* resized = nullptr;
  if (all == 0)
    NEARFAR_MALLOC::release(old);
  else if ((resized = NEARFAR_MALLOC::reallocate(old, all, NEARFAR_CALL_SITE)) == nullptr)
    return std::exchange(errno, saved_errno);
  std::memcpy(block, &resized, sizeof resized);
  errno = saved_errno;
  return 0;
}

NEARFAR_ENTRY_POINT void free(void* block) noexcept { NEARFAR_MALLOC::release(block); }
NEARFAR_ENTRY_POINT void cfree(void* block) noexcept { NEARFAR_MALLOC::release(block); }
NEARFAR_ENTRY_POINT void free_sized(void* block, std::size_t bytes) noexcept {
  NEARFAR_MALLOC::release_sized(block, bytes);
}
NEARFAR_ENTRY_POINT void free_aligned_sized(void* block, std::size_t, std::size_t) noexcept {
  NEARFAR_MALLOC::release(block);
}

NEARFAR_ENTRY_POINT void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return NEARFAR_MALLOC::allocate_aligned(alignment, bytes, NEARFAR_CALL_SITE);
}

NEARFAR_ENTRY_POINT void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return NEARFAR_MALLOC::allocate_aligned(alignment, bytes, NEARFAR_CALL_SITE);
}

NEARFAR_ENTRY_POINT int posix_memalign(void** result, std::size_t alignment,
                                       std::size_t bytes) noexcept {
  if (alignment % sizeof(void*) != 0 || alignment == 0 || (alignment & (alignment - 1)) != 0)
    return EINVAL;
  const int saved_errno = errno;
  void* block = NEARFAR_MALLOC::allocate_aligned(alignment, bytes, NEARFAR_CALL_SITE);
  const int code = errno;
  errno = saved_errno; // POSIX: the code is returned
  if (block == nullptr) return code;
  *result = block;
  return 0;
}

NEARFAR_ENTRY_POINT void* valloc(std::size_t bytes) noexcept {
  constexpr std::size_t page = 4096;
  return NEARFAR_MALLOC::allocate_aligned(page, bytes, NEARFAR_CALL_SITE);
}

NEARFAR_ENTRY_POINT void* pvalloc(std::size_t bytes) noexcept {
  constexpr std::size_t page = 4096;
  if (bytes > SIZE_MAX - page) {
    errno = ENOMEM;
    return nullptr;
  }
  return NEARFAR_MALLOC::allocate_aligned(page, (bytes + page - 1) / page * page,
                                          NEARFAR_CALL_SITE);
}

} // extern "C"

// operator new is replaced too, so that the call site is that of the program, not of libstdc++.
namespace nearfar {

[[gnu::always_inline]] inline void* new_block(std::size_t bytes, std::size_t alignment,
                                              CallSite site) {
  void* block = alignment == 0 ? NEARFAR_MALLOC::allocate(bytes, site)
                               : NEARFAR_MALLOC::allocate_aligned(alignment, bytes, site);
  return block != nullptr ? block : NEARFAR_MALLOC::new_failed(bytes, alignment, site);
}

[[gnu::always_inline]] inline void* new_block_nothrow(std::size_t bytes, std::size_t alignment,
                                                      CallSite site) {
  void* block = alignment == 0 ? NEARFAR_MALLOC::allocate(bytes, site)
                               : NEARFAR_MALLOC::allocate_aligned(alignment, bytes, site);
  return block != nullptr ? block : NEARFAR_MALLOC::nothrow_new_failed(bytes, alignment);
}

#ifdef NEARFAR_MALLOC_CACHED
/// Called last by operator new, as allocate_by_site() by malloc().
[[gnu::noinline]] inline void* new_by_site(std::size_t bytes) {
  return new_block(bytes, 0, NEARFAR_CALL_SITE);
}
#endif

} // namespace nearfar

#ifdef NEARFAR_MALLOC_CACHED
#define NEARFAR_PLAIN_NEW(name)                                                                    \
  NEARFAR_ENTRY_POINT void* operator name(std::size_t bytes) {                                     \
    void* block = NEARFAR_MALLOC_CACHED(bytes);                                                    \
    return block != nullptr ? block : ::nearfar::new_by_site(bytes);                               \
  }
#else
#define NEARFAR_PLAIN_NEW(name) NEARFAR_NEW(name, (std::size_t bytes), 0, new_block)
#endif
// One line for each form: parameters, expression of the alignment, function.
#define NEARFAR_NEW(name, parameters, alignment, function, ...)                                    \
  NEARFAR_ENTRY_POINT void* operator name parameters __VA_ARGS__ {                                 \
    return ::nearfar::function(bytes, alignment, NEARFAR_CALL_SITE);                               \
  }
#define NEARFAR_NEW_FORMS(name)                                                                    \
  NEARFAR_PLAIN_NEW(name)                                                                          \
  NEARFAR_NEW(name, (std::size_t bytes, std::align_val_t alignment),                               \
              static_cast<std::size_t>(alignment), new_block)                                      \
  NEARFAR_NEW(name, (std::size_t bytes, const std::nothrow_t&), 0, new_block_nothrow, noexcept)    \
  NEARFAR_NEW(name, (std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&),        \
              static_cast<std::size_t>(alignment), new_block_nothrow, noexcept)
#define NEARFAR_DELETE(name, ...)                                                                  \
  NEARFAR_ENTRY_POINT void operator name(void* block __VA_OPT__(, ) __VA_ARGS__) noexcept {        \
    NEARFAR_MALLOC::release(block);                                                                \
  }
#define NEARFAR_DELETE_FORMS(name)                                                                 \
  NEARFAR_ENTRY_POINT void operator name(void* block, std::size_t bytes) noexcept {                \
    NEARFAR_MALLOC::release_sized(block, bytes);                                                   \
  }                                                                                                \
  NEARFAR_DELETE(name)                                                                             \
  NEARFAR_DELETE(name, std::align_val_t)                                                           \
  NEARFAR_DELETE(name, std::size_t, std::align_val_t)                                              \
  NEARFAR_DELETE(name, const std::nothrow_t&)                                                      \
  NEARFAR_DELETE(name, std::align_val_t, const std::nothrow_t&)

NEARFAR_NEW_FORMS(new)
NEARFAR_NEW_FORMS(new[])
NEARFAR_DELETE_FORMS(delete)
NEARFAR_DELETE_FORMS(delete[])
