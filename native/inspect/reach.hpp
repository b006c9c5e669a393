// Persistent leaks: objects that cannot be reached by links.
//
// Method   conservative, as collectors for C do it (Boehm and Weiser 1988): every aligned word of a
//          reached object that, taken as an offset, lies in another object counts as a link to it.
//          That covers PMEMoids, whose second word is an offset. A number may equal an offset by
//          chance, so that a leak is missed. Links in other forms (unaligned, as differences or
//          with bits set above the offset) are not detected, so that a reachable object may be
//          reported as lost.
//          In pools of nearfar's typed layer the links are known: the members that the pool's own
//          descriptors name, each to an object of its type. Any other link is damage.
#pragma once

#include <string>
#include <vector>

#include "inspect/pool.hpp"

namespace nearfar::inspect {

/// Lost objects of one type number.
struct Lost {
  static constexpr std::size_t max_examples = 5;

  std::uint64_t type = 0; ///< number; of a typed object its index among the pool's types
  std::string name;       ///< of a typed object's type
  std::uint64_t objects = 0;
  std::uint64_t heads = 0; ///< of these, those that no other lost object links
  Offset block_bytes = 0;
  std::vector<Offset> examples; ///< offsets of the first ones
};

struct Reach {
  bool typed = false;        ///< some links are known by type
  std::uint64_t objects = 0; ///< all but the library's own
  std::uint64_t lost = 0;
  Offset lost_bytes = 0; ///< blocks, headers included
  std::vector<Lost> types;
};

/// Examines a pool into `pool` and reports the objects that are lost after recovery. Returns an
/// empty Reach if the pool has damage, no root object, or logs that could not be replayed. Invalid
/// typed links are added to the pool's findings.
Reach find_lost(const PoolView& view, PoolReport& pool);

} // namespace nearfar::inspect
