// What the typed layer keeps in a pool, all of it: heads, types, the redo log, chunks and objects.
#pragma once

#include "inspect/records.hpp"
#include "inspect/slabs.hpp"

namespace nearfar::inspect {

struct Typed {
  Store store;
  Records records; ///< redo path
  Slabs slabs;     ///< redo path
};

/// Looks at it as libpmemobj's recovery leaves the pool: `seen`, which is `source` or `recovered`.
/// Records of the redo log are applied to `recovered`, and `sink` is told the objects of the redo
/// path; those of the undo path are the library's own.
Typed examine_typed(const Source& seen, const Descriptor& descriptor, PatchedSource& recovered,
                    Findings& findings, ObjectSink& sink);

} // namespace nearfar::inspect
