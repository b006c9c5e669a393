// A small pool written from docs/formats/pool.md alone, for tests and fuzzing: no library made it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "inspect/layout.hpp"

namespace nearfar::inspect::made {

inline constexpr Offset lanes_offset = 8192;
inline constexpr std::uint64_t lane_count = 4;
inline constexpr Offset heap_offset = 0x6000;
inline constexpr std::uint32_t chunk_count = 9;
inline constexpr Offset zone_offset = heap_offset + heap_header_bytes;
inline constexpr Offset chunk_headers = zone_offset + zone_head_bytes;
inline constexpr Offset first_chunk = zone_offset + zone_meta_bytes;
inline constexpr Offset pool_bytes =
    (first_chunk + chunk_count * chunk_bytes + page_bytes - 1) / page_bytes * page_bytes;

using Image = std::vector<std::byte>;

/// Chunks: 0 a run of blocks of 128 bytes with compact headers and the root object; 1 to 2 a run of
/// two chunks with legacy headers and a fixed bitmap; 3 a run without headers; 4 an aligned run; 5
/// to 6 a large object; 7 to 8 free.
Image pool();

/// The same with a redo log to be replayed, and an undo log with an extension.
Image interrupted_pool();

inline constexpr Offset root_object = first_chunk + 320 + 16; ///< block 0 of chunk 0
inline constexpr Offset large_object = first_chunk + 5 * chunk_bytes + 16;
inline constexpr std::uint64_t redo_value = 0x5eed;

void put(Image& image, Offset offset, std::uint64_t word);

/// Makes a checksum right again; each looks at the image alone and does nothing out of bounds.
void fix_header_checksum(Image& image);
void fix_descriptor_checksum(Image& image);
void fix_heap_checksum(Image& image);
void fix_redo_checksum(Image& image, Offset log, std::size_t entry_bytes);
void fix_undo_checksum(Image& image, Offset log, Offset entry);

} // namespace nearfar::inspect::made
