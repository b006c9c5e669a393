// Replaces malloc and the functions that glibc defines with it.
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "alloc/preload/foreign.hpp"
#include "alloc/preload/next_malloc.hpp"
#include "alloc/preload/placement.hpp"
#include "os/address_space.hpp"

#define NEARFAR_EXPORT __attribute__((visibility("default"), used))

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

void free_any(void* ptr) {
  if (ptr == nullptr) return;
  if (is_ours(ptr)) [[likely]]
    return process_allocator.release(ptr);
  require_libc_block("free", ptr);
  next_free(ptr);
}

[[gnu::always_inline]] inline void* aligned(std::size_t alignment, std::size_t size,
                                            const void* address, const void* frame) {
  return place(size, address, frame, [&](unsigned tier) {
    return process_allocator.allocate_aligned(tier, alignment, size);
  });
}

/// Rounds up as memalign() and aligned_alloc() of glibc do up to 2.37. 0, an invalid alignment, if
/// there is no such power.
std::size_t power_of_two_from(std::size_t alignment) {
  constexpr std::size_t largest = std::size_t{1} << 63;
  return alignment > largest ? 0 : std::bit_ceil(alignment);
}

/// Copies a resized block of libc to a block of ours.
void* adopt(void* ptr, std::size_t size, void* block) {
  if (block == nullptr) return nullptr;
  const std::size_t had = next_usable_size(ptr);
  std::memcpy(block, ptr, had < size ? had : size);
  next_free(ptr);
  return block;
}

[[gnu::always_inline]] inline void* reallocate_any(void* ptr, std::size_t size, const void* address,
                                                   const void* frame) {
  if (ptr != nullptr && size == 0) {
    free_any(ptr);
    return nullptr;
  }
  if (ptr != nullptr && is_ours(ptr))
    return process_allocator.reallocate(process_allocator.window.tier_of(ptr), ptr, size);
  if (ptr != nullptr) require_libc_block("realloc", ptr);
  void* block = place(size, address, frame,
                      [&](unsigned tier) { return process_allocator.allocate(tier, size); });
  return ptr == nullptr ? block : adopt(ptr, size, block);
}

} // namespace

extern "C" {

NEARFAR_EXPORT void* malloc(std::size_t size) noexcept {
  return place(size, NEARFAR_CALL_SITE,
               [&](unsigned tier) { return process_allocator.allocate(tier, size); });
}

NEARFAR_EXPORT void free(void* ptr) noexcept { free_any(ptr); }
NEARFAR_EXPORT void cfree(void* ptr) noexcept { free_any(ptr); }
NEARFAR_EXPORT void free_sized(void* ptr, std::size_t) noexcept { free_any(ptr); }
NEARFAR_EXPORT void free_aligned_sized(void* ptr, std::size_t, std::size_t) noexcept {
  free_any(ptr);
}

NEARFAR_EXPORT void* calloc(std::size_t count, std::size_t size) noexcept {
  std::size_t bytes = 0; // allocate_zeroed() reports an overflow
  if (__builtin_mul_overflow(count, size, &bytes)) bytes = SIZE_MAX;
  return place(bytes, NEARFAR_CALL_SITE,
               [&](unsigned tier) { return process_allocator.allocate_zeroed(tier, count, size); });
}

NEARFAR_EXPORT void* realloc(void* ptr, std::size_t size) noexcept {
  return reallocate_any(ptr, size, NEARFAR_CALL_SITE);
}

NEARFAR_EXPORT void* reallocarray(void* ptr, std::size_t count, std::size_t size) noexcept {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  return reallocate_any(ptr, bytes, NEARFAR_CALL_SITE);
}

NEARFAR_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return aligned(power_of_two_from(alignment), size, NEARFAR_CALL_SITE);
}

NEARFAR_EXPORT void* memalign(std::size_t alignment, std::size_t size) noexcept {
  return aligned(power_of_two_from(alignment), size, NEARFAR_CALL_SITE);
}

NEARFAR_EXPORT int posix_memalign(void** result, std::size_t alignment, std::size_t size) noexcept {
  if (alignment % sizeof(void*) != 0 || !std::has_single_bit(alignment)) return EINVAL;
  const int before = errno;
  void* block = aligned(alignment, size, NEARFAR_CALL_SITE);
  const int code = errno;
  errno = before; // POSIX: the code is returned
  if (block == nullptr) return code;
  *result = block;
  return 0;
}

NEARFAR_EXPORT void* valloc(std::size_t size) noexcept {
  return aligned(os::page_bytes, size, NEARFAR_CALL_SITE);
}

NEARFAR_EXPORT void* pvalloc(std::size_t size) noexcept {
  if (size > SIZE_MAX - os::page_bytes) {
    errno = ENOMEM;
    return nullptr;
  }
  const std::size_t pages = (size + os::page_bytes - 1) / os::page_bytes;
  return aligned(os::page_bytes, pages * os::page_bytes, NEARFAR_CALL_SITE);
}

NEARFAR_EXPORT std::size_t malloc_usable_size(void* ptr) noexcept {
  if (ptr == nullptr) return 0;
  if (is_ours(ptr)) return process_allocator.usable_size(ptr, "malloc_usable_size");
  require_libc_block("malloc_usable_size", ptr);
  return next_usable_size(ptr);
}

} // extern "C"
