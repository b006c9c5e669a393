// The parsers of zones, chunks, runs and object headers.
#include "inspect/census.hpp"
#include "inspect/fuzz/parts.hpp"

using namespace nearfar::inspect;

namespace {

constexpr Offset heap_offset = 4096;
constexpr Offset size_bytes = heap_offset + smallest_heap_bytes + 3 * chunk_bytes;

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  nearfar::fuzz::Choices choices(data, size);
  const bool zones = choices.take<std::uint8_t>() % 2 == 0;
  Findings findings;
  Census census;
  if (zones) {
    const fuzz::Padded view(choices, heap_offset + heap_header_bytes, size_bytes);
    Descriptor place;
    place.heap_offset = heap_offset;
    place.heap_bytes = size_bytes - heap_offset;
    place.mapped_bytes = size_bytes;
    ObjectWalker walker(view, findings, census);
    walk_heap(view, place, findings, [&](const ChunkGroup& chunk) { walker.walk(chunk); });
  } else { // one chunk, whose head, bitmap and objects are the input
    const std::uint16_t flags = choices.take<std::uint8_t>() & flags_valid;
    const auto type = choices.take<std::uint8_t>() % 2 == 0 ? ChunkType::run : ChunkType::used;
    const fuzz::Padded view(choices, 0, 4 * chunk_bytes);
    const std::uint32_t count = choices.take<std::uint8_t>() % 4 + 1u;
    ObjectWalker walker(view, findings, census);
    walker.walk({0, 0, count, type, flags});
    if (census.all().block_bytes > count * chunk_bytes) std::abort();
  }
  return 0;
}
