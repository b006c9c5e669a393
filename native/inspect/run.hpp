// Layout of a run: a head, a bitmap with one bit a block, padding, and the blocks.
#pragma once

#include "inspect/heap.hpp"

namespace nearfar::inspect {

struct Run {
  Offset block_bytes = 0;
  Offset alignment = 0;      ///< of the objects, 0 if the run is not an aligned one
  Offset bitmap = 0;         ///< where it lies
  std::uint32_t words = 0;   ///< of the bitmap that stand for blocks
  std::uint32_t padding = 0; ///< words behind them, all ones
  std::uint32_t blocks = 0;
  Offset first = 0; ///< where block 0 lies
};

/// Bytes of the header in front of each object of a chunk: 64, 16, or none.
Offset object_header_bytes(std::uint16_t chunk_flags);

/// Reads the head of a run and computes its layout; false, with a finding, if it is invalid.
bool read_run(Window& window, const ChunkGroup& chunk, Run& run, Findings& findings);

} // namespace nearfar::inspect
