// Replaces malloc and the functions that glibc and libstdc++ define with it.
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "alloc/preload/foreign.hpp"
#include "alloc/preload/new_failure.hpp"
#include "alloc/preload/next_malloc.hpp"
#include "alloc/preload/placement.hpp"
#include "base/library_new.hpp"

using namespace nearfar;
using namespace nearfar::alloc;

namespace {

/// After start() of api.cpp, before the program's constructors.
[[gnu::constructor(102)]] void start() {
  if (process_allocator.open()) {
    configure();
    configure_preload();
  }
}

bool is_ours(const void* ptr) { return process_allocator.window.contains(ptr); }

/// Rounds up to a power of two, as glibc's memalign() and aligned_alloc() do up to 2.37. Returns 0
/// (invalid) on overflow.
std::size_t power_of_two_from(std::size_t alignment) {
  constexpr std::size_t largest = std::size_t{1} << 63;
  return alignment > largest ? 0 : std::bit_ceil(alignment);
}

/// Copies a libc block into `block` and frees it.
void* adopt(void* ptr, std::size_t size, void* block) {
  if (block == nullptr) return nullptr;
  const std::size_t had = next_usable_size(ptr);
  std::memcpy(block, ptr, had < size ? had : size);
  next_free(ptr);
  return block;
}

/// Entry points that place blocks in the default tier or by the plan.
struct PlacedMalloc {
  [[gnu::always_inline]] static void* allocate(std::size_t size, CallSite site) {
    if (process_allocator.settings.has_plan) [[unlikely]]
      return allocate_by_plan(size, site);
    return process_allocator.allocate_in_default(size);
  }

  [[gnu::always_inline]] static void* allocate_cached(std::size_t size) {
    return process_allocator.allocate_cached_in_default(size);
  }

  [[gnu::noinline]] static void* allocate_by_plan(std::size_t size, CallSite site) {
    return place_by_plan(size, site,
                         [&](unsigned tier) { return process_allocator.allocate(tier, size); });
  }

  [[gnu::always_inline]] static void* allocate_zeroed(std::size_t count, std::size_t size,
                                                      CallSite site) {
    std::size_t bytes = 0; // allocate_zeroed() reports an overflow
    if (__builtin_mul_overflow(count, size, &bytes)) bytes = SIZE_MAX;
    return place(bytes, site, [&](unsigned tier) {
      return process_allocator.allocate_zeroed(tier, count, size);
    });
  }

  [[gnu::always_inline]] static void* allocate_aligned(std::size_t alignment, std::size_t size,
                                                       CallSite site) {
    const std::size_t rounded = power_of_two_from(alignment);
    return place(size, site, [&](unsigned tier) {
      return process_allocator.allocate_aligned(tier, rounded, size);
    });
  }

  [[gnu::always_inline]] static void* reallocate(void* ptr, std::size_t size, CallSite site) {
    if (ptr == nullptr) return allocate(size, site);
    if (size == 0) {
      release(ptr);
      return nullptr;
    }
    if (is_ours(ptr))
      return process_allocator.reallocate(process_allocator.window.tier_of(ptr), ptr, size);
    require_libc_block("realloc", ptr);
    return adopt(ptr, size, allocate(size, site));
  }

  [[gnu::always_inline]] static void release_sized(void* ptr, std::size_t size) {
    if (process_allocator.settings.canary) [[unlikely]]
      return check_and_release(ptr, size);
    release(ptr);
  }

  [[gnu::noinline]] static void check_and_release(void* ptr, std::size_t size) {
    process_allocator.check_size(ptr, size);
    release(ptr);
  }

  [[gnu::always_inline]] static void release(void* ptr) {
    if (is_ours(ptr)) [[likely]]
      return process_allocator.release(ptr);
    if (ptr != nullptr) release_foreign(ptr);
  }

  [[gnu::noinline]] static void release_foreign(void* ptr) {
    require_libc_block("free", ptr);
    next_free(ptr);
  }

  static void* new_failed(std::size_t size, std::size_t alignment, CallSite site) {
    while (call_new_handler())
      if (void* block =
              alignment == 0 ? allocate(size, site) : allocate_aligned(alignment, size, site);
          block != nullptr)
        return block;
    throw_bad_alloc(size);
  }

  static void* nothrow_new_failed(std::size_t size, std::size_t alignment) {
    return call_library_nothrow_new(size, alignment);
  }
};

} // namespace

#define NEARFAR_MALLOC PlacedMalloc
#define NEARFAR_MALLOC_CACHED PlacedMalloc::allocate_cached
#include "base/malloc_entry_points.hpp"

/// As on macOS and in other allocators.
extern "C" NEARFAR_ENTRY_POINT std::size_t malloc_good_size(std::size_t bytes) noexcept {
  return process_allocator.good_size(bytes);
}

extern "C" NEARFAR_ENTRY_POINT std::size_t malloc_usable_size(void* ptr) noexcept {
  if (ptr == nullptr) return 0;
  if (is_ours(ptr)) return process_allocator.usable_size(ptr, "malloc_usable_size");
  require_libc_block("malloc_usable_size", ptr);
  return next_usable_size(ptr);
}
