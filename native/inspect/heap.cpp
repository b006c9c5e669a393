#include "inspect/heap.hpp"

#include <algorithm>
#include <array>
#include <cinttypes>

#include "inspect/checksum.hpp"

namespace nearfar::inspect {

namespace {

constexpr const char* part = "heap";

/// Number of zones of a heap; a remainder that is too small for one chunk is not a zone.
std::uint32_t zones_of(Offset heap_bytes) {
  std::uint32_t zones = 0;
  for (Offset left = heap_bytes - heap_header_bytes; left >= zone_meta_bytes + chunk_bytes;
       left -= std::min(left, zone_bytes))
    ++zones;
  return zones;
}

/// Chunks of one zone; the last one has what is left of the heap.
std::uint32_t chunks_of(std::uint32_t zone, std::uint32_t zones, Offset heap_bytes) {
  if (zone + 1 < zones) return zone_chunks;
  const Offset left = heap_bytes - heap_header_bytes - zone * zone_bytes;
  return static_cast<std::uint32_t>(
      std::min<Offset>((left - zone_meta_bytes) / chunk_bytes, zone_chunks));
}

void check_header(const PoolView& view, Offset heap, Findings& findings) {
  std::array<std::byte, heap_header_bytes> header;
  if (!view.read(heap, header.data(), header.size()))
    return findings.unreadable(part, heap, header.size());
  const auto stored = load<std::uint64_t>(&header[heap_at::checksum]);
  const std::uint64_t found = checksum(header, heap_at::checksum);
  if (stored != found)
    findings.damage(part, heap + heap_at::checksum,
                    "the heap header's checksum is %#" PRIx64 ", its bytes sum up to %#" PRIx64,
                    stored, found);
  if (std::memcmp(header.data(), "MEMORY_HEAP_HDR", 16) != 0)
    findings.damage(part, heap, "the heap's signature is not there");
  const auto major = load<std::uint64_t>(&header[heap_at::major]);
  const auto size = load<std::uint64_t>(&header[heap_at::chunk_size]);
  const auto per_zone = load<std::uint64_t>(&header[heap_at::chunks_per_zone]);
  if (major != 1 || size != chunk_bytes || per_zone != zone_chunks)
    findings.damage(part, heap + heap_at::major,
                    "heap version %" PRIu64 " with %" PRIu64 " chunks of %" PRIu64
                    " bytes a zone is not known",
                    major, per_zone, size);
}

class ZoneWalker {
public:
  ZoneWalker(const PoolView& view, Findings& findings, const ChunkSink& sink)
      : window_(view), findings_(findings), sink_(sink) {}

  void walk(Offset zone, std::uint32_t expected, Zones& zones);

private:
  void walk_chunks(Offset zone, std::uint32_t chunks, Zones& zones);
  bool check_chunk(const ChunkGroup& chunk, std::uint32_t left);
  void check_run_data(const ChunkGroup& chunk);
  void count(const ChunkGroup& chunk, Zones& zones);

  Window window_;
  Findings& findings_;
  const ChunkSink& sink_;
};

void ZoneWalker::walk(Offset zone, std::uint32_t expected, Zones& zones) {
  const std::byte* head = window_.at(zone, zone_head_bytes);
  if (head == nullptr) return findings_.unreadable(part, zone, zone_head_bytes);
  const auto magic = load<std::uint32_t>(head);
  const auto chunks = load<std::uint32_t>(head + 4);
  if (magic == 0) return; // never used
  if (magic != zone_magic)
    return findings_.damage(part, zone, "a zone begins with %#x, neither zero nor %#x", magic,
                            zone_magic);
  if (chunks == 0 || chunks > expected)
    return findings_.damage(part, zone + 4, "a zone says it has %u chunks; there is room for %u",
                            chunks, expected);
  if (chunks < expected)
    findings_.note(part, zone + 4, "a zone has %u chunks where there is room for %u: the pool grew",
                   chunks, expected);
  ++zones.in_use;
  zones.chunks += chunks;
  walk_chunks(zone, chunks, zones);
}

void ZoneWalker::walk_chunks(Offset zone, std::uint32_t chunks, Zones& zones) {
  for (std::uint32_t i = 0; i < chunks;) {
    const Offset at = zone + zone_head_bytes + 8 * Offset{i};
    const std::byte* header = window_.at(at, 8);
    if (header == nullptr) return findings_.unreadable(part, at, 8);
    const ChunkGroup chunk{
        at, zone + zone_meta_bytes + chunk_bytes * i, load<std::uint32_t>(header + 4),
        static_cast<ChunkType>(load<std::uint16_t>(header)), load<std::uint16_t>(header + 2)};
    if (!check_chunk(chunk, chunks - i)) return;
    if (chunk.type == ChunkType::run) check_run_data(chunk);
    count(chunk, zones);
    sink_(chunk);
    i += chunk.count;
  }
}

bool ZoneWalker::check_chunk(const ChunkGroup& chunk, std::uint32_t left) {
  const bool known = chunk.type == ChunkType::free || chunk.type == ChunkType::used ||
                     chunk.type == ChunkType::run;
  if (!known)
    findings_.damage(part, chunk.header,
                     "a chunk has type %u where a free, used or run chunk begins",
                     static_cast<unsigned>(chunk.type));
  else if ((chunk.flags & ~flags_valid) != 0)
    findings_.damage(part, chunk.header + 2, "a chunk has unknown flags %#x",
                     unsigned{chunk.flags});
  else if (chunk.count == 0 || chunk.count > left)
    findings_.damage(part, chunk.header + 4, "a chunk says it is %u chunks long; %u are left",
                     chunk.count, left);
  else
    return true;
  return false;
}

/// The further chunks of a run contain the distance to its first chunk.
void ZoneWalker::check_run_data(const ChunkGroup& chunk) {
  for (std::uint32_t i = 1; i < chunk.count; ++i) {
    const Offset at = chunk.header + 8 * Offset{i};
    const std::byte* header = window_.at(at, 8);
    if (header == nullptr) return findings_.unreadable(part, at, 8);
    if (static_cast<ChunkType>(load<std::uint16_t>(header)) == ChunkType::run_data &&
        load<std::uint32_t>(header + 4) == i)
      continue;
    return findings_.damage(part, at, "chunk %u of a run of %u does not point back to its first", i,
                            chunk.count);
  }
}

void ZoneWalker::count(const ChunkGroup& chunk, Zones& zones) {
  if (chunk.type == ChunkType::free) zones.free_chunks += chunk.count;
  if (chunk.type == ChunkType::used) zones.large_chunks += chunk.count;
  if (chunk.type == ChunkType::run) zones.run_chunks += chunk.count;
}

} // namespace

Zones walk_heap(const PoolView& view, const Descriptor& descriptor, Findings& findings,
                const ChunkSink& sink) {
  check_header(view, descriptor.heap_offset, findings);
  Zones zones;
  zones.count = zones_of(descriptor.heap_bytes);
  const Offset mapped = descriptor.mapped_bytes - descriptor.heap_offset;
  if (zones_of(mapped) != zones.count)
    findings.damage(part, descriptor_at::heap_size,
                    "a heap of %" PRIu64 " bytes has %u zones, but the file has room for %u",
                    descriptor.heap_bytes, zones.count, zones_of(mapped));
  ZoneWalker walker(view, findings, sink);
  for (std::uint32_t zone = 0; zone < zones.count; ++zone)
    walker.walk(descriptor.heap_offset + heap_header_bytes + zone * zone_bytes,
                chunks_of(zone, zones.count, descriptor.heap_bytes), zones);
  return zones;
}

} // namespace nearfar::inspect
