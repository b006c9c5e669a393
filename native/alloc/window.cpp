#include "alloc/window.hpp"

#include <bit>
#include <nearfar/hmalloc.h>

#include "os/address_space.hpp"
#include "os/lock.hpp"

struct hm_address_window hm_window = {0, 0};

extern "C" void __tsan_init() __attribute__((weak)); // there where ThreadSanitizer is

namespace nearfar::alloc {

constinit Geometry geometry;

namespace {

constinit os::Lock open_lock;
constinit std::atomic<bool> is_open{false};

constexpr unsigned widest_shift = 42;
constexpr unsigned narrowest_shift = 30;
constexpr unsigned sanitizer_shift = 34; ///< ThreadSanitizer leaves programs 1.5 TiB in one piece
constexpr unsigned strict_shift = 36; ///< strict overcommit charges span tables when made writable
constexpr std::size_t alignment = std::size_t{1} << 30;
/// Where a window that is not reserved begins: far from where the kernel places mappings by itself.
constexpr std::uintptr_t unreserved_base = std::uintptr_t{1} << 45;

std::size_t table_size(unsigned shift) {
  return (std::size_t{tier_count} << (shift - span_shift)) * sizeof(Span);
}

bool try_shift(unsigned shift, bool reserved) {
  std::byte* base = reserved ? os::reserve_space_at(std::size_t{tier_count} << shift, alignment)
                             : reinterpret_cast<std::byte*>(unreserved_base);
  if (base == nullptr) return false;
  std::byte* table = os::reserve_space_at(table_size(shift), os::page_bytes);
  // Readable at once, so that any address of the window may be looked up; writable tier by tier.
  if (table == nullptr || os::protect(table, table_size(shift), os::Access::read) != 0) {
    if (reserved) os::unmap(base, std::size_t{tier_count} << shift);
    return false;
  }
  geometry.shift = shift;
  geometry.reserved = reserved;
  geometry.spans = reinterpret_cast<Span*>(table);
  geometry.base = reinterpret_cast<std::uintptr_t>(base);
  hm_window.shift = shift;
  hm_window.base = geometry.base;
  return true;
}

bool choose_window() {
  const std::size_t limit = os::address_space_limit();
  if (limit != SIZE_MAX) { // a reservation would count against RLIMIT_AS
    const auto shift = static_cast<unsigned>(std::bit_width(limit));
    return try_shift(shift < narrowest_shift ? narrowest_shift
                     : shift > widest_shift  ? widest_shift
                                             : shift,
                     false);
  }
  if (os::strict_overcommit()) return try_shift(strict_shift, false);
  const unsigned first = __tsan_init != nullptr ? sanitizer_shift : widest_shift;
  for (unsigned shift = first; shift >= narrowest_shift; shift -= 2)
    if (try_shift(shift, true)) return true;
  return false;
}

} // namespace

int open_spans(unsigned tier) {
  const std::size_t bytes = spans_per_tier() * sizeof(Span);
  auto* first = reinterpret_cast<std::byte*>(geometry.spans) + tier * bytes;
  return os::protect(first, bytes, os::Access::read_write);
}

os::Lock& window_lock() { return open_lock; }

bool open_window() {
  if (is_open.load(std::memory_order_acquire)) return true;
  const os::LockGuard guard(open_lock);
  if (is_open.load(std::memory_order_relaxed)) return true;
  if (!choose_window()) return false;
  is_open.store(true, std::memory_order_release);
  return true;
}

} // namespace nearfar::alloc
