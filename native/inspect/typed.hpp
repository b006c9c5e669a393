// All data of the typed layer in a pool: heads, types, the redo log, chunks and objects.
#pragma once

#include "inspect/object_chunks.hpp"
#include "inspect/records.hpp"

namespace nearfar::inspect {

struct Typed {
  ObjectStore store;
  Records records;            ///< redo path
  ObjectChunks object_chunks; ///< redo path
};

/// Examines `seen`, the pool after libpmemobj's recovery: `recovered`, or the view below it if
/// libpmemobj's logs are not pending. Records of nearfar's redo log are applied to `recovered`, and
/// `sink` receives the objects of the redo path; objects of the undo path are libpmemobj's.
Typed examine_typed(const PoolView& seen, const Descriptor& descriptor, PatchedView& recovered,
                    Findings& findings, ObjectSink& sink);

} // namespace nearfar::inspect
