// All data of the typed layer in a pool: heads, types, the redo log, chunks and objects.
#pragma once

#include "inspect/records.hpp"
#include "inspect/slabs.hpp"

namespace nearfar::inspect {

struct Typed {
  ObjectStore store;
  Records records; ///< redo path
  Slabs slabs;     ///< redo path
};

/// Examines it after libpmemobj's recovery of the pool: `seen`, which is `view` or `recovered`.
/// Records of the redo log are applied to `recovered`, and `sink` receives the objects of the redo
/// path; those of the undo path are the library's own.
Typed examine_typed(const PoolView& seen, const Descriptor& descriptor, PatchedView& recovered,
                    Findings& findings, ObjectSink& sink);

} // namespace nearfar::inspect
