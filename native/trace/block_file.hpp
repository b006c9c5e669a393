// Blocks of the file: head, checksum, payload, which may be compressed.
//
// Thread safety  none.
#pragma once

#include <cstdint>
#include <cstdio>
#include <vector>

#include "trace/format.hpp"
#include "trace/varint.hpp"

namespace nearfar::trace {

/// A payload as a block: head and stored bytes, in `out`. Compressed if that is smaller.
void pack(BlockKind kind, std::uint32_t count, std::uint64_t first, const Bytes& payload,
          std::vector<std::uint8_t>& out);

/// Result of reading a block.
enum class Got : std::uint8_t { block, end, cut, damaged };

/// Reads the block at the file's offset and checks it. `stored` is its payload as it is in the
/// file.
Got read_stored(std::FILE* file, BlockHead& head, std::vector<std::uint8_t>& stored);

/// Likewise; `plain` is its payload, decompressed.
Got unpack(std::FILE* file, BlockHead& head, std::vector<std::uint8_t>& plain);

} // namespace nearfar::trace
