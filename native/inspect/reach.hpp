// Which objects nothing leads to: persistent leaks.
//
// Method   conservative, as collectors for C do it (Boehm and Weiser 1988): every aligned word of a
//          reached object that, taken as an offset, lies in another object counts as a link to it.
//          That covers PMEMoids, whose second word is an offset. A number may look like an offset
//          by chance, so a leak can be missed; links that are kept otherwise (unaligned, as
//          differences or with bits set above the offset) are not seen, so an object may be called
//          lost that is not.
//          In pools of nearfar's typed layer the links are known: exactly the members that the
//          pool's own descriptors name, each leading to an object of its type. A link that leads
//          elsewhere is damage.
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
  std::uint64_t heads = 0; ///< of these, no lost object leads to; the others hang below one
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

/// Examines a pool into `pool` and reports what is lost as recovery would leave it. Nothing is
/// reported (an empty Reach) if the pool has damage, no root object, or logs that could not be
/// replayed. Typed links that lead nowhere are added to the pool's findings.
Reach find_lost(const PoolView& view, PoolReport& pool);

} // namespace nearfar::inspect
