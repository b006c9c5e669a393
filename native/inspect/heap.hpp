// The heap: its header, its zones, and their chunks.
#pragma once

#include <functional>

#include "inspect/descriptor.hpp"

namespace nearfar::inspect {

/// Adjacent chunks with one header: free, one large object, or a run of equal blocks.
struct ChunkGroup {
  Offset header;       ///< where its eight bytes of header lie
  Offset data;         ///< where its first byte lies
  std::uint32_t count; ///< of chunks
  ChunkType type;
  std::uint16_t flags;

  Offset bytes() const { return chunk_bytes * count; }
};

struct Zones {
  std::uint32_t count = 0;
  std::uint32_t in_use = 0;
  std::uint64_t chunks = 0; ///< of zones in use
  std::uint64_t free_chunks = 0;
  std::uint64_t run_chunks = 0;
  std::uint64_t large_chunks = 0;
};

/// Called for each group of chunks, in ascending order.
using ChunkSink = std::function<void(const ChunkGroup&)>;

/// Checks the heap's header and walks all zones. Requires a usable descriptor.
Zones walk_heap(const PoolView& view, const Descriptor& descriptor, Findings& findings,
                const ChunkSink& sink);

} // namespace nearfar::inspect
