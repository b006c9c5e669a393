// The layout of a libpmemobj 1.x pool (major version 6): offsets, sizes and flags.
//
// Meaning        docs/formats/pool.md describes each field and names the sources.
// Units          bytes; offsets count from the beginning of the file unless a comment says
//                otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearfar::pmdk {

using Offset = std::uint64_t;

inline constexpr Offset page_bytes = 4096; ///< offsets of heap and mapping are multiples of it
inline constexpr Offset line_bytes = 64;
inline constexpr Offset smallest_part_bytes = Offset{2} << 20; ///< what libpmemobj agrees to open

namespace header_at { // the header of every libpmem pool
inline constexpr Offset signature = 0;
inline constexpr Offset major = 8;
inline constexpr Offset compat = 12;
inline constexpr Offset incompat = 16;
inline constexpr Offset ro_compat = 20;
inline constexpr Offset set_uuid = 24;
inline constexpr Offset uuid = 40;
inline constexpr Offset neighbors =
    56; ///< UUIDs: previous and next part, previous and next replica
inline constexpr Offset created = 120;
inline constexpr Offset alignment = 128;
inline constexpr Offset machine_class = 136;
inline constexpr Offset byte_order = 137;
inline constexpr Offset reserved = 138; ///< four bytes, zero
inline constexpr Offset machine = 142;
inline constexpr Offset half = 2048; ///< where the checksum ends with the feature cksum_2k
inline constexpr Offset shutdown = 4024;
inline constexpr Offset shutdown_dirty = shutdown + 16;
inline constexpr Offset checksum = 4088;
} // namespace header_at
inline constexpr std::size_t header_bytes = 4096;
inline constexpr std::size_t shutdown_bytes = 64;
inline constexpr std::size_t uuid_bytes = 16;
inline constexpr std::uint32_t obj_major = 6;
inline constexpr std::uint32_t feature_single_header = 1;
inline constexpr std::uint32_t feature_checksum_2k = 2;
inline constexpr std::uint32_t feature_shutdown_state = 4;
inline constexpr std::uint32_t features_known = 7;
inline constexpr std::uint64_t alignment_x86_64 = 0x7f737777310; ///< four bits a basic type
inline constexpr std::uint16_t machine_x86_64 = 62;

namespace descriptor_at { // the part of the descriptor that its checksum covers, and what follows
                          // it
inline constexpr Offset begin = 4096;
inline constexpr Offset layout = begin;
inline constexpr Offset lanes_offset = begin + 1024;
inline constexpr Offset lane_count = begin + 1032;
inline constexpr Offset heap_offset = begin + 1040;
inline constexpr Offset checksum = begin + 2040;
inline constexpr Offset root_offset = begin + 2048;
inline constexpr Offset run_id = begin + 2056;
inline constexpr Offset root_size = begin + 2064;
inline constexpr Offset conversion = begin + 2072;
inline constexpr Offset heap_size = begin + 2080;
inline constexpr Offset allocated = begin + 2088; ///< kept only where statistics are switched on
} // namespace descriptor_at
inline constexpr std::size_t descriptor_bytes = 2048;
inline constexpr std::size_t layout_bytes = 1024;

namespace log_at { // the head of a log, from its beginning
inline constexpr Offset checksum = 0;
inline constexpr Offset next = 8;
inline constexpr Offset capacity = 16;
inline constexpr Offset generation = 24;
inline constexpr Offset flags = 32;
inline constexpr Offset unused = 40; ///< 24 bytes, zero
} // namespace log_at
inline constexpr std::size_t log_head_bytes = 64;
inline constexpr Offset lane_bytes = 3072;
inline constexpr Offset internal_capacity = 192;
inline constexpr Offset external_capacity = 640;
inline constexpr Offset undo_capacity = 2048;
inline constexpr std::uint64_t log_user_owned = 1;

namespace heap_at { // from the beginning of the heap
inline constexpr Offset signature = 0;
inline constexpr Offset major = 16;
inline constexpr Offset chunk_size = 40;
inline constexpr Offset chunks_per_zone = 48;
inline constexpr Offset checksum = 1016;
} // namespace heap_at
inline constexpr std::size_t heap_header_bytes = 1024;
inline constexpr std::uint32_t zone_magic = 0xC3F0A2D2;
inline constexpr Offset chunk_bytes = 262144;
inline constexpr std::uint32_t zone_chunks = 65528;
inline constexpr Offset zone_head_bytes = 64;
inline constexpr Offset zone_meta_bytes = zone_head_bytes + 8 * Offset{zone_chunks};
inline constexpr Offset zone_bytes = zone_meta_bytes + chunk_bytes * zone_chunks;
inline constexpr Offset smallest_heap_bytes = heap_header_bytes + zone_meta_bytes + chunk_bytes;

enum class ChunkType : std::uint16_t { unknown, footer, free, used, run, run_data, count };

inline constexpr std::uint16_t flag_compact = 1;
inline constexpr std::uint16_t flag_no_header = 2;
inline constexpr std::uint16_t flag_aligned = 4;
inline constexpr std::uint16_t flag_flexible = 8;
inline constexpr std::uint16_t flags_valid = 15;

inline constexpr Offset run_head_bytes = 16;             ///< block size, alignment
inline constexpr Offset fixed_bitmap_bytes = 38 * 8;     ///< of a run without flag_flexible
inline constexpr std::uint64_t object_internal = 0x8000; ///< flag of objects the library made
inline constexpr unsigned size_bits = 48; ///< of an object's size; the flags lie above

} // namespace nearfar::pmdk
