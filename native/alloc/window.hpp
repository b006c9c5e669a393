// The address window of all tiers, and the table that says what each of its spans holds.
//
// Invariants  1. Tier t spans 2^shift bytes from base + (t << shift).
//             2. A span's entry says `slab` exactly while a slab covers it, `large` while it is the
//                first of a large block, free_head and free_tail at both ends of a free run, `none`
//                anywhere else: inside runs and large blocks, and where nothing ever was.
// Thread safety  open_window() by anyone; an entry is written under the lock of its tier's runs,
//                and read without it by who owns a block in its span.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "alloc/size_classes.hpp"
#include "os/lock.hpp"

namespace nearfar::alloc {

inline constexpr unsigned tier_count = 8;

enum class SpanKind : std::uint8_t { none, slab, large, free_head, free_tail };

/// 16 bytes a span: 1/4096 of what a tier spans, and only where it was used.
struct Span {
  std::atomic<std::uint64_t> word;   ///< slab: address of its states; free_head: next, previous
  std::atomic<std::uint32_t> extent; ///< slab: its first span; large, free_head: spans; tail: head
  std::atomic<std::uint8_t> kind;
  std::atomic<std::uint8_t> size_class;
  std::atomic<std::uint8_t> budget; ///< large: 1 + the number of the budget it counts against, or 0
};
static_assert(sizeof(Span) == 16);

struct Geometry {
  std::uintptr_t base = 0;
  unsigned shift = 0;
  bool reserved = false; ///< the whole window is mapped; otherwise chunk by chunk
  Span* spans = nullptr;
};
extern Geometry geometry;

/// Opens the window once. False if this process has no address space for it.
bool open_window();
os::Lock& window_lock();
/// Makes the entries of a tier's spans writable. An errno, 0 for success.
int open_spans(unsigned tier);

inline std::size_t spans_per_tier() { return std::size_t{1} << (geometry.shift - span_shift); }
inline std::byte* span_address(std::uint32_t span) {
  return reinterpret_cast<std::byte*>(geometry.base + (std::uintptr_t{span} << span_shift));
}
inline std::uintptr_t offset_of(const void* ptr) {
  return reinterpret_cast<std::uintptr_t>(ptr) - geometry.base;
}
inline bool inside_window(std::uintptr_t offset) { return (offset >> geometry.shift) < tier_count; }

/// Whether what was stamped has been left alone for a whole tick of the decay.
inline bool old_enough(std::uint8_t stamp, std::uint8_t now) {
  return static_cast<std::uint8_t>(now - stamp) >= 2;
}

} // namespace nearfar::alloc
