#include "alloc/window.hpp"

#include <bit>

#include "os/address_space.hpp"

extern "C" void __tsan_init() __attribute__((weak)); // defined if ThreadSanitizer is loaded

namespace nearfar::alloc {

namespace {

constexpr unsigned widest_shift = 42;
constexpr unsigned narrowest_shift = 30;
constexpr unsigned sanitizer_shift = 34; ///< ThreadSanitizer leaves 1.5 TiB in one piece
constexpr unsigned strict_shift = 36; ///< strict overcommit charges span tables when made writable
constexpr std::size_t alignment = std::size_t{1} << 30;
/// Base of a window that is not reserved: far from the addresses where the kernel places mappings.
constexpr std::uintptr_t unreserved_base = std::uintptr_t{1} << 45;

std::size_t span_table_bytes(unsigned shift) {
  return (std::size_t{tier_count} << (shift - span_shift)) * sizeof(Span);
}

} // namespace

bool Window::map(unsigned shift_per_tier, bool reserve) {
  const std::size_t all_bytes = std::size_t{tier_count} << shift_per_tier;
  std::byte* begin = reserve ? os::reserve_space_at(all_bytes, alignment)
                             : reinterpret_cast<std::byte*>(unreserved_base);
  if (begin == nullptr) return false;
  // All entries are readable, so that any address of the window can be looked up; those of a tier
  // become writable when it grows.
  std::byte* table = os::map_readable(span_table_bytes(shift_per_tier));
  if (table == nullptr) {
    if (reserve) os::unmap(begin, all_bytes);
    return false;
  }
  shift = shift_per_tier;
  reserved = reserve;
  spans = reinterpret_cast<Span*>(table);
  base = reinterpret_cast<std::uintptr_t>(begin);
  bytes = all_bytes;
  is_open_.store(true, std::memory_order_release);
  return true;
}

bool Window::choose() {
  const std::size_t limit = os::address_space_limit();
  if (limit != SIZE_MAX) { // a reservation would count against RLIMIT_AS
    const auto wanted = static_cast<unsigned>(std::bit_width(limit));
    return map(wanted < narrowest_shift ? narrowest_shift
               : wanted > widest_shift  ? widest_shift
                                        : wanted,
               false);
  }
  if (os::strict_overcommit()) return map(strict_shift, false);
  const unsigned first = __tsan_init != nullptr ? sanitizer_shift : widest_shift;
  for (unsigned tried = first; tried >= narrowest_shift; tried -= 2)
    if (map(tried, true)) return true;
  return false;
}

bool Window::open() {
  if (is_open_.load(std::memory_order_acquire)) return true;
  const os::LockGuard guard(lock_);
  return is_open_.load(std::memory_order_relaxed) || choose();
}

bool Window::open_reserved(unsigned shift_per_tier) {
  const os::LockGuard guard(lock_);
  return is_open_.load(std::memory_order_relaxed) || map(shift_per_tier, true);
}

void Window::close() {
  const os::LockGuard guard(lock_);
  if (!is_open_.load(std::memory_order_relaxed)) return;
  os::unmap(reinterpret_cast<std::byte*>(base), bytes);
  os::unmap(reinterpret_cast<std::byte*>(spans), span_table_bytes(shift));
  base = bytes = 0;
  shift = 0;
  spans = nullptr;
  is_open_.store(false, std::memory_order_relaxed);
}

std::byte* Window::last_span(std::uint32_t first) const {
  return span_address(first + spans[first].extent.load(std::memory_order_relaxed) - 1);
}

void Window::close_guard(std::uint32_t first) const {
  os::protect(last_span(first), span_bytes, os::Access::none);
}

void Window::open_guard(std::uint32_t first) const {
  os::protect(last_span(first), span_bytes, os::Access::read_write);
}

} // namespace nearfar::alloc
