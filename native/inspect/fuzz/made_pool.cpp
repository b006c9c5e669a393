#include "inspect/fuzz/made_pool.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "inspect/checksum.hpp"
#include "inspect/pool_view.hpp"

namespace nearfar::inspect::made {

namespace {

constexpr std::uint16_t type_free = 2;
constexpr std::uint16_t type_used = 3;
constexpr std::uint16_t type_run = 4;
constexpr std::uint16_t type_run_data = 5;

bool within(const Image& image, Offset offset, std::size_t bytes) {
  return offset <= image.size() && bytes <= image.size() - offset;
}

void fix_checksum(Image& image, Offset begin, std::size_t bytes, std::size_t own, std::size_t end) {
  if (!within(image, begin, bytes)) return;
  put(image, begin + own, checksum(std::span(image).subspan(begin, bytes), own, end));
}

void put_text(Image& image, Offset offset, const char* text, std::size_t bytes) {
  std::memcpy(&image[offset], text, bytes);
}

void write_header(Image& image) {
  put_text(image, 0, "PMEMOBJ", 8);
  put(image, header_at::major, obj_major);
  put(image, header_at::incompat, feature_checksum_2k);
  for (Offset at = header_at::set_uuid; at < header_at::created; at += uuid_bytes) {
    put(image, at, at == header_at::set_uuid ? 0x1111 : 0x2222);
    put(image, at + 8, 0x3333);
  }
  put(image, header_at::created, 1700000000);
  put(image, header_at::alignment, alignment_x86_64);
  put(image, header_at::machine_class, std::uint64_t{machine_x86_64} << 48 | 0x0102);
  fix_header_checksum(image);
}

void write_descriptor(Image& image) {
  put_text(image, descriptor_at::layout, "made", 5);
  put(image, descriptor_at::lanes_offset, lanes_offset);
  put(image, descriptor_at::lane_count, lane_count);
  put(image, descriptor_at::heap_offset, heap_offset);
  put(image, descriptor_at::root_offset, root_object);
  put(image, descriptor_at::root_size, 100);
  put(image, descriptor_at::run_id, 2);
  put(image, descriptor_at::heap_size, pool_bytes - heap_offset);
  fix_descriptor_checksum(image);
  for (std::uint64_t lane = 0; lane < lane_count; ++lane) {
    const Offset at = lanes_offset + lane * lane_bytes;
    put(image, at + log_at::capacity, internal_capacity);
    put(image, at + 256 + log_at::capacity, external_capacity);
    put(image, at + 960 + log_at::capacity, undo_capacity);
  }
}

void chunk(Image& image, std::uint32_t index, std::uint16_t type, std::uint16_t flags,
           std::uint32_t count) {
  put(image, chunk_headers + 8 * Offset{index},
      std::uint64_t{count} << 32 | std::uint64_t{flags} << 16 | type);
}

/// Head and bitmap of a run whose first `used` of `blocks` blocks are in use.
void run(Image& image, std::uint32_t index, Offset block_bytes, Offset alignment,
         std::uint32_t words, std::uint32_t blocks, std::uint32_t used) {
  const Offset at = first_chunk + chunk_bytes * index;
  put(image, at, block_bytes);
  put(image, at + 8, alignment);
  for (std::uint32_t i = 0; i < words; ++i) {
    std::uint64_t word = 0;
    for (std::uint32_t bit = 0; bit < 64; ++bit)
      if (i * 64 + bit < used || i * 64 + bit >= blocks) word |= std::uint64_t{1} << bit;
    put(image, at + 16 + 8 * Offset{i}, word);
  }
}

void write_runs(Image& image) {
  chunk(image, 0, type_run, flag_compact | flag_flexible, 1);
  run(image, 0, 128, 0, 38, 2045, 200);
  for (std::uint32_t i = 0; i < 200; ++i) { // objects of two blocks in the bitmap's second word
    const Offset at = first_chunk + 320 + 128 * Offset{i};
    const bool root = i == 0;
    const std::uint64_t blocks = i >= 64 && i < 128 ? 2 : 1;
    put(image, at, 128 * blocks | (root ? object_internal << size_bits : 0));
    put(image, at + 8, root ? 0 : i % 4);
    put(image, at + 16, at + 16 + 128); // a link to the next one
  }
  chunk(image, 1, type_run, 0, 2);
  chunk(image, 2, type_run_data, 0, 1);
  run(image, 1, 256, 0, 38, 2046, 50);
  for (std::uint32_t i = 0; i < 50; ++i) {
    const Offset at = first_chunk + chunk_bytes + 320 + 256 * Offset{i};
    put(image, at + 8, 256);
    put(image, at + 56, 9);
  }
  chunk(image, 3, type_run, flag_no_header | flag_flexible, 1);
  run(image, 3, 64, 0, 70, 4087, 100);
  chunk(image, 4, type_run, flag_compact | flag_aligned | flag_flexible, 1);
  run(image, 4, 192, 64, 22, 1363, 70);
  for (std::uint32_t i = 0; i < 70; ++i) {
    const Offset at = first_chunk + 4 * chunk_bytes + 240 + 192 * Offset{i};
    put(image, at, 192);
    put(image, at + 8, 5);
  }
}

void write_heap(Image& image) {
  put_text(image, heap_offset, "MEMORY_HEAP_HDR", 16);
  put(image, heap_offset + heap_at::major, 1);
  put(image, heap_offset + heap_at::chunk_size, chunk_bytes);
  put(image, heap_offset + heap_at::chunks_per_zone, zone_chunks);
  fix_heap_checksum(image);
  put(image, zone_offset, std::uint64_t{chunk_count} << 32 | zone_magic);
  write_runs(image);
  chunk(image, 5, type_used, flag_compact, 2);
  put(image, large_object - 16, 2 * chunk_bytes);
  put(image, large_object - 8, 8);
  chunk(image, 7, type_free, 0, 2);
}

} // namespace

void put(Image& image, Offset offset, std::uint64_t word) {
  if (within(image, offset, sizeof word)) std::memcpy(&image[offset], &word, sizeof word);
}

void fix_header_checksum(Image& image) {
  const bool half = within(image, header_at::incompat, 4) &&
                    (load<std::uint32_t>(&image[header_at::incompat]) & feature_checksum_2k) != 0;
  fix_checksum(image, 0, header_bytes, header_at::checksum,
               half ? header_at::half : header_at::checksum);
}

void fix_descriptor_checksum(Image& image) {
  fix_checksum(image, descriptor_at::begin, descriptor_bytes,
               descriptor_at::checksum - descriptor_at::begin, descriptor_bytes);
}

void fix_heap_checksum(Image& image) {
  fix_checksum(image, heap_offset, heap_header_bytes, heap_at::checksum, heap_header_bytes);
}

void fix_redo_checksum(Image& image, Offset log, std::size_t entry_bytes) {
  fix_checksum(image, log, log_head_bytes + entry_bytes, log_at::checksum,
               log_head_bytes + entry_bytes);
}

void fix_undo_checksum(Image& image, Offset log, Offset entry) {
  if (!within(image, log, log_head_bytes) || !within(image, entry, 24)) return;
  const auto size = load<std::uint64_t>(&image[entry + 16]);
  if (size > pool_bytes) return;
  const Offset bytes = (24 + size + 63) / 64 * 64;
  if (!within(image, entry, bytes)) return;
  Fletcher64 sum(checksum(std::span(image).subspan(entry, bytes), 8));
  sum.add(std::span(image).subspan(log + log_at::generation, 8));
  put(image, entry + 8, sum.sum());
}

Image pool() {
  Image image(pool_bytes);
  write_header(image);
  write_descriptor(image);
  write_heap(image);
  return image;
}

Image interrupted_pool() {
  Image image = pool();
  const Offset redo = lanes_offset; // lane 0: one word into the second object
  put(image, redo + log_head_bytes, root_object + 128 + 8);
  put(image, redo + log_head_bytes + 8, redo_value);
  fix_redo_checksum(image, redo, 16);
  const Offset undo = lanes_offset + lane_bytes + 960; // lane 1: two snapshots, one in an extension
  const Offset extension = large_object + 48;          // on a line, within the large object
  put(image, undo + log_at::generation, 7);
  put(image, undo + log_at::capacity, 64);
  put(image, undo + log_at::next, extension);
  put(image, extension + log_at::capacity, 4096);
  for (const Offset entry : {undo + log_head_bytes, extension + log_head_bytes}) {
    put(image, entry, std::uint64_t{6} << 61 | (root_object + 256));
    put(image, entry + 16, 40);
    put(image, entry + 24, 0xabcd);
    fix_undo_checksum(image, undo, entry);
  }
  return image;
}

} // namespace nearfar::inspect::made
