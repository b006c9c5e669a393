// The second page of a pool: the offsets of its lanes, its heap and its root object.
#pragma once

#include <string>

#include "inspect/findings.hpp"
#include "inspect/pool_view.hpp"

namespace nearfar::inspect {

struct Descriptor {
  std::string layout; ///< as the program named it, control characters as they are
  Offset lanes_offset = 0;
  std::uint64_t lane_count = 0;
  Offset heap_offset = 0;
  Offset heap_bytes = 0;   ///< what the heap field says, or the rest of the file where it is zero
  Offset mapped_bytes = 0; ///< the file in whole pages: what libpmemobj maps
  Offset root_offset = 0;  ///< 0: the pool has no root object yet
  Offset root_bytes = 0;
  std::uint64_t run_id = 0;
  bool usable = false; ///< lanes and heap lie within the file and apart: they may be looked at

  Offset heap_end() const { return heap_offset + heap_bytes; }
  bool in_heap(Offset offset) const { return offset >= heap_offset && offset < heap_end(); }
  /// Whether recovery may store `bytes` there: heap, lanes, root offset and root size.
  bool storable(Offset offset, Offset bytes) const;
};

/// Reads and checks it; findings name every field that libpmemobj would reject or fail on.
Descriptor read_descriptor(const PoolView& view, Findings& findings);
/// Reads the place of the root object again, from a pool after recovery.
void read_root(const PoolView& recovered, Descriptor& descriptor);

} // namespace nearfar::inspect
