#include "inspect/run.hpp"

#include <algorithm>
#include <bit>
#include <cinttypes>

namespace nearfar::inspect {

namespace {

constexpr const char* part = "run";
constexpr Offset bits_per_word = 64;
constexpr Offset fixed_words = fixed_bitmap_bytes / 8;
constexpr Offset head_words = run_head_bytes / 8;
constexpr Offset line_words = line_bytes / 8;

Offset rounded_up(Offset value, Offset step) { return (value + step - 1) / step * step; }

/// Words that a flexible bitmap takes: a bit for each block that would fit if there were no bitmap,
/// rounded up so that head and bitmap together end with a cache line.
Offset flexible_words(Offset content, Offset block_bytes) {
  const Offset blocks = content / block_bytes;
  const Offset words = (blocks + bits_per_word - 1) / bits_per_word;
  return rounded_up(words + head_words, line_words) - head_words;
}

} // namespace

Offset object_header_bytes(std::uint16_t chunk_flags) {
  if ((chunk_flags & flag_compact) != 0) return 16;
  return (chunk_flags & flag_no_header) != 0 ? 0 : 64;
}

bool read_run(Window& window, const ChunkGroup& chunk, Run& run, Findings& findings) {
  const std::byte* head = window.at(chunk.data, run_head_bytes);
  if (head == nullptr) {
    findings.unreadable(part, chunk.data, run_head_bytes);
    return false;
  }
  const Offset content = chunk.bytes() - run_head_bytes;
  const Offset header = object_header_bytes(chunk.flags);
  run.block_bytes = load<std::uint64_t>(head);
  run.alignment = (chunk.flags & flag_aligned) != 0 ? load<std::uint64_t>(head + 8) : 0;
  const bool aligned = (chunk.flags & flag_aligned) != 0;
  if (aligned && (!std::has_single_bit(run.alignment) || run.alignment > chunk_bytes)) {
    findings.damage(part, chunk.data + 8, "a run's alignment %" PRIu64 " is not a power of two",
                    run.alignment);
    return false;
  }
  if (run.block_bytes <= header || run.block_bytes < 8 || run.block_bytes > content) {
    findings.damage(part, chunk.data,
                    "a run of %" PRIu64 " bytes says its blocks have %" PRIu64 " bytes", content,
                    run.block_bytes);
    return false;
  }
  const bool flexible = (chunk.flags & flag_flexible) != 0;
  const Offset words = flexible ? flexible_words(content, run.block_bytes) : fixed_words;
  const Offset room = content > words * 8 ? content - words * 8 : 0;
  Offset blocks = room / run.block_bytes;
  if (!flexible) blocks = std::min(blocks, fixed_words * bits_per_word);
  if (load<std::uint64_t>(head + 8) != 0 && blocks > 0) --blocks; // alignment may cost one
  if (blocks == 0) {
    findings.damage(part, chunk.data, "a run has no room for a single block of %" PRIu64 " bytes",
                    run.block_bytes);
    return false;
  }
  run.blocks = static_cast<std::uint32_t>(blocks);
  run.words = static_cast<std::uint32_t>((blocks + bits_per_word - 1) / bits_per_word);
  run.padding = static_cast<std::uint32_t>(words) - run.words;
  run.bitmap = chunk.data + run_head_bytes;
  run.first = run.bitmap + words * 8;
  if (aligned) run.first = rounded_up(run.first + header, run.alignment) - header;
  if (run.first + blocks * run.block_bytes <= chunk.data + chunk.bytes()) return true;
  findings.damage(part, chunk.data + 8, "the blocks of a run leave its chunks");
  return false;
}

} // namespace nearfar::inspect
