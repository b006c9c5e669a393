#include "inspect/objects.hpp"

#include <bit>
#include <cinttypes>

namespace nearfar::inspect {

namespace {

constexpr const char* part = "object";
constexpr std::uint32_t bits_per_word = 64;
constexpr std::uint64_t size_mask = (std::uint64_t{1} << size_bits) - 1;

std::uint64_t low_bits(std::uint32_t count) {
  return count >= bits_per_word ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

} // namespace

void ObjectWalker::walk(const ChunkGroup& chunk) {
  if (chunk.type == ChunkType::used) walk_large(chunk);
  if (chunk.type == ChunkType::run) walk_run(chunk);
}

/// Fills in size, type and flags from a header; false, with a finding, if it is invalid.
bool ObjectWalker::read_header(Offset at, std::uint16_t flags, Object& object) {
  const Offset header = object_header_bytes(flags);
  std::uint64_t object_flags = 0;
  object.offset = at + header;
  object.type = 0;
  object.internal = false;
  if (header == 0) return true; // the block is the object
  const std::byte* bytes = blocks_.at(at, header);
  if (bytes == nullptr) {
    findings_.unreadable(part, at, header);
    return false;
  }
  if (header == 16) {
    const auto size = load<std::uint64_t>(bytes);
    object.block_bytes = size & size_mask;
    object_flags = size >> size_bits;
    object.type = load<std::uint64_t>(bytes + 8);
  } else {
    object.block_bytes = load<std::uint64_t>(bytes + 8);
    object_flags = load<std::uint64_t>(bytes + 48) >> size_bits;
    object.type = load<std::uint64_t>(bytes + 56);
  }
  object.internal = object_flags == object_internal;
  if (object_flags == 0 || object.internal) return true;
  findings_.damage(part, at, "an object has unknown flags %#" PRIx64, object_flags);
  return false;
}

void ObjectWalker::walk_large(const ChunkGroup& chunk) {
  Object object{};
  object.block_bytes = chunk.bytes();
  if (!read_header(chunk.data, chunk.flags, object)) return;
  if (object.block_bytes != chunk.bytes())
    return findings_.damage(part, chunk.data,
                            "an object says it takes %" PRIu64 " bytes, its chunks have %" PRIu64,
                            object.block_bytes, chunk.bytes());
  object.bytes = chunk.bytes() - object_header_bytes(chunk.flags);
  sink_.object(object);
}

/// Blocks whose bits are set. Bits without a block are set from the run's creation on.
std::uint64_t ObjectWalker::used_blocks(const Run& run) {
  std::uint64_t used = 0;
  for (std::uint32_t i = 0; i < run.words; ++i) {
    const std::byte* at = bitmap_.at(run.bitmap + 8 * Offset{i}, 8);
    if (at == nullptr) return used;
    used += static_cast<std::uint64_t>(std::popcount(load<std::uint64_t>(at)));
  }
  const std::uint32_t spare = run.words * bits_per_word - run.blocks;
  return used < spare ? 0 : used - spare;
}

void ObjectWalker::check_padding(const Run& run) {
  const std::uint32_t in_last = run.blocks - (run.words - 1) * bits_per_word;
  for (std::uint32_t i = run.words - 1; i < run.words + run.padding; ++i) {
    const Offset offset = run.bitmap + 8 * Offset{i};
    const std::byte* at = bitmap_.at(offset, 8);
    if (at == nullptr) return findings_.unreadable(part, offset, 8);
    const std::uint64_t ones = i < run.words ? ~low_bits(in_last) : ~std::uint64_t{0};
    if ((load<std::uint64_t>(at) & ones) != ones)
      return findings_.damage("run", offset, "bits behind the last block of a run are not set");
  }
}

void ObjectWalker::walk_run(const ChunkGroup& chunk) {
  Run run;
  if (!read_run(blocks_, chunk, run, findings_)) return;
  check_padding(run);
  sink_.run(run, chunk, used_blocks(run));
  for (std::uint32_t i = 0; i < run.words; ++i) {
    const Offset offset = run.bitmap + 8 * Offset{i};
    const std::byte* at = bitmap_.at(offset, 8);
    if (at == nullptr) return findings_.unreadable("run", offset, 8);
    const std::uint32_t left = run.blocks - i * bits_per_word;
    const std::uint64_t word = load<std::uint64_t>(at) & low_bits(left);
    if (word != 0 && !walk_word(run, chunk, i, word)) return;
  }
}

/// The objects whose first block has its bit in one word; none reaches into the next word.
bool ObjectWalker::walk_word(const Run& run, const ChunkGroup& chunk, std::uint32_t index,
                             std::uint64_t word) {
  while (word != 0) {
    const auto bit = static_cast<std::uint32_t>(std::countr_zero(word));
    const std::uint32_t blocks =
        object_in_run(run, chunk, index * bits_per_word + bit, word >> bit);
    if (blocks == 0) return false; // its size is not known, so the next one's place is not either
    word &= ~(low_bits(blocks) << bit);
  }
  return true;
}

/// Number of blocks of the object that begins at `block`; `bits` are its own and those behind it.
std::uint32_t ObjectWalker::object_in_run(const Run& run, const ChunkGroup& chunk,
                                          std::uint32_t block, std::uint64_t bits) {
  const Offset at = run.first + run.block_bytes * block;
  Object object{};
  object.block_bytes = run.block_bytes;
  if (!read_header(at, chunk.flags, object)) return 0;
  const Offset blocks = object.block_bytes / run.block_bytes;
  if (blocks * run.block_bytes != object.block_bytes || blocks == 0) {
    findings_.damage(
        part, at, "an object takes %" PRIu64 " bytes, no multiple of its run's blocks of %" PRIu64,
        object.block_bytes, run.block_bytes);
    return 0;
  }
  const auto held = static_cast<std::uint32_t>(std::countr_one(bits));
  if (blocks > held) {
    findings_.damage(part, at, "an object takes %" PRIu64 " blocks, but only %u are marked as used",
                     blocks, held);
    return 0;
  }
  object.bytes = object.block_bytes - object_header_bytes(chunk.flags);
  sink_.object(object);
  return static_cast<std::uint32_t>(blocks);
}

} // namespace nearfar::inspect
