// Preloaded into programs: enters each block of the program's malloc in the allocation log.
//
// Cost           about ten instructions for free(), forty for malloc(); a block that is tracked
//                costs more (blocks.hpp). free() calls the program's last, so that few instructions
//                lie between the misses of blocks that are in no cache.
// Allocator      the program's. Blocks of libc that are allocated below malloc are not seen.
// Thread safety  any thread.
#include <cstddef>
#include <cstdint>

#include "alloclog/preload/blocks.hpp"
#include "base/next_malloc.hpp"

namespace {

using nearfar::CallSite;
using nearfar::next_malloc;
using nearfar::alloclog::has_log;
using nearfar::alloclog::state;

[[gnu::always_inline]] inline void* logged(void* block, std::size_t bytes, CallSite site) {
  if (block != nullptr && has_log()) [[likely]]
    return nearfar::alloclog::enter(block, bytes, site);
  return block;
}

[[gnu::noinline]] void release_slowly(void* block) {
  if (block != nullptr && has_log()) {
    nearfar::alloclog::remove(block);
    if (state.freed == 0 && nearfar::next_malloc_detail::is_found.load())
      __atomic_store_n(&state.next_free, next_malloc().free, __ATOMIC_RELAXED);
  }
  next_malloc().free(block);
}

/// The entry points with the program's allocator.
struct LoggedMalloc {
  [[gnu::always_inline]] static void* allocate(std::size_t bytes, CallSite site) {
    return logged(next_malloc().malloc(bytes), bytes, site);
  }
  [[gnu::always_inline]] static void* allocate_zeroed(std::size_t count, std::size_t bytes,
                                                      CallSite site) {
    return logged(next_malloc().calloc(count, bytes), count * bytes, site);
  }
  [[gnu::always_inline]] static void* allocate_aligned(std::size_t alignment, std::size_t bytes,
                                                       CallSite site) {
    return logged(next_malloc().memalign(alignment, bytes), bytes, site);
  }
  [[gnu::always_inline]] static void* reallocate(void* block, std::size_t bytes, CallSite site) {
    if (block == nullptr) return allocate(bytes, site);
    if (!has_log()) return next_malloc().realloc(block, bytes);
    const auto old_site = nearfar::alloclog::site_of(block);
    const auto taken = nearfar::alloclog::remove(block);
    void* result = next_malloc().realloc(block, bytes);
    if (result == nullptr && bytes != 0) [[unlikely]]
      nearfar::alloclog::restore(reinterpret_cast<std::uint64_t>(block), taken);
    if (result == nullptr || old_site == 0) return logged(result, bytes, site);
    return nearfar::alloclog::enter_resized(result, bytes, old_site, taken.bytes);
  }
  [[gnu::always_inline]] static void release_sized(void* block, std::size_t) { release(block); }

  [[gnu::always_inline]] static void release(void* block) {
    auto* const next = __atomic_load_n(&state.next_free, __ATOMIC_RELAXED);
    if (next == nullptr || nearfar::alloclog::may_be_tracked(block)) [[unlikely]]
      return release_slowly(block);
    next(block);
  }
  static void* new_failed(std::size_t bytes, std::size_t alignment, CallSite) {
    return nearfar::call_library_new(bytes, alignment);
  }
  static void* nothrow_new_failed(std::size_t bytes, std::size_t alignment) {
    return nearfar::call_library_nothrow_new(bytes, alignment);
  }
};

} // namespace

#define NEARFAR_MALLOC LoggedMalloc
#include "base/malloc_entry_points.hpp"

// libhmalloc calls these for blocks that the program allocates in tiers (hmalloc.h).

extern "C" NEARFAR_ENTRY_POINT void hm_on_allocate(const void* block, std::size_t bytes,
                                                   const void* caller, const void* frame) noexcept {
  logged(const_cast<void*>(block), bytes, CallSite{caller, frame});
}

extern "C" NEARFAR_ENTRY_POINT void hm_on_free(const void* block,
                                               std::size_t usable_bytes) noexcept {
  if (has_log()) nearfar::alloclog::remove(block, usable_bytes);
}
