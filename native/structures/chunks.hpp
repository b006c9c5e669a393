// The chunks of memory that a structure has allocated: a table of links in its root.
//
// Sizes          chunk k has unit << (k / 8) bytes: at most an eighth of a structure's memory is
//                unused, and the size of a chunk does not have to be stored. 168 chunks have 2^24
//                units.
// Durability     a link appears together with its memory (PersistencePolicy::allocate is atomic).
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearfar::structures {

/// Links of chunks; 0: none. Zeroed memory is an empty table.
struct ChunkTable {
  static constexpr unsigned capacity = 168;
  std::uint64_t chunk[capacity];
};

/// Units in chunk k, when the first chunks have `first`.
constexpr std::size_t chunk_units(unsigned k, std::size_t first) { return first << (k / 8); }

} // namespace nearfar::structures
