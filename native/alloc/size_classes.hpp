// Size classes of small and medium blocks.
//
//   16, 32 .. 128, then eight per doubling up to 512 KiB: at most 12.5 % of a block is unused.
//
// A slab has blocks of one class, and 64 KiB or the size of eight blocks, whichever is larger.
// Threads cache blocks of up to 32 KiB.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace nearfar::alloc {

inline constexpr unsigned span_shift = 16; ///< tiers are divided into spans of 64 KiB
inline constexpr std::size_t span_bytes = std::size_t{1} << span_shift;

inline constexpr std::size_t granule_bytes = 16;
inline constexpr unsigned linear_classes = 8; ///< 16 to 128
inline constexpr unsigned class_count = linear_classes + 8 * 12;
inline constexpr std::size_t largest_class_bytes = std::size_t{512} << 10;
inline constexpr std::size_t largest_cached_bytes = std::size_t{32} << 10;

constexpr unsigned computed_class(std::size_t size) {
  if (size <= granule_bytes) return 0;
  if (size <= 128) return static_cast<unsigned>((size - 1) / granule_bytes);
  const std::size_t last = size - 1;
  const auto top = static_cast<unsigned>(std::bit_width(last)) - 1;
  return linear_classes + (top - 7) * 8 + static_cast<unsigned>((last >> (top - 3)) & 7);
}

constexpr std::size_t computed_class_bytes(unsigned size_class) {
  if (size_class < linear_classes) return (size_class + std::size_t{1}) * granule_bytes;
  const unsigned above = size_class - linear_classes;
  return (std::size_t{9} + above % 8) << (above / 8 + 4);
}

inline constexpr unsigned cached_classes = computed_class(largest_cached_bytes) + 1;

struct ClassInfo {
  std::uint64_t reciprocal = 0; ///< of the size, times 2^64, rounded up
  std::uint32_t bytes = 0;      ///< of a block
  std::uint32_t blocks = 0;     ///< in a slab
  std::uint32_t spans = 0;      ///< of a slab
  std::uint32_t cached = 0;     ///< maximum of blocks in a thread's stack
};

constexpr ClassInfo computed_info(unsigned size_class) {
  ClassInfo info;
  const std::size_t bytes = computed_class_bytes(size_class);
  info.bytes = static_cast<std::uint32_t>(bytes);
  info.reciprocal = UINT64_MAX / bytes + 1;
  constexpr std::size_t min_slab_blocks = 8;
  info.spans = static_cast<std::uint32_t>((bytes * min_slab_blocks + span_bytes - 1) / span_bytes);
  info.blocks = static_cast<std::uint32_t>(info.spans * span_bytes / bytes);
  constexpr std::size_t cached_bytes = std::size_t{64} << 10, max_blocks = 2048, min_blocks = 4;
  const std::size_t wanted = cached_bytes / bytes;
  info.cached = static_cast<std::uint32_t>(wanted > max_blocks   ? max_blocks
                                           : wanted < min_blocks ? min_blocks
                                                                 : wanted);
  if (bytes > largest_cached_bytes) info.cached = 0;
  return info;
}

inline constexpr auto class_infos = [] {
  std::array<ClassInfo, class_count> infos{};
  for (unsigned c = 0; c < class_count; ++c)
    infos[c] = computed_info(c);
  return infos;
}();

/// Classes of sizes up to 1 KiB, looked up by (size + 15) / 16.
inline constexpr std::size_t table_bytes = 1024;
inline constexpr auto class_table = [] {
  std::array<std::uint8_t, table_bytes / granule_bytes + 1> table{};
  for (std::size_t i = 0; i < table.size(); ++i)
    table[i] = static_cast<std::uint8_t>(computed_class(i * granule_bytes));
  return table;
}();

/// The class of a size of at most largest_class_bytes.
inline unsigned class_of(std::size_t size) {
  if (size <= table_bytes) return class_table[(size + granule_bytes - 1) / granule_bytes];
  return computed_class(size);
}

/// The smallest class of at least `size` bytes all of whose blocks are aligned; class_count if
/// there is none.
inline unsigned aligned_class(std::size_t alignment, std::size_t size) {
  if (alignment > span_bytes || size > largest_class_bytes) return class_count;
  unsigned c = class_of(size < alignment ? alignment : size);
  while (c < class_count && class_infos[c].bytes % alignment != 0)
    ++c;
  return c;
}

inline std::size_t spans_for(std::size_t bytes) {
  return (bytes >> span_shift) + ((bytes & (span_bytes - 1)) != 0 ? 1 : 0);
}

static_assert(computed_class(largest_class_bytes) == class_count - 1);
static_assert(computed_class_bytes(class_count - 1) == largest_class_bytes);

} // namespace nearfar::alloc
