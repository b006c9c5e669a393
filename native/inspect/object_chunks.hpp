// The chunks of a typed pool on the redo path: a directory of them, and the objects in each.
#pragma once

#include "inspect/object_store.hpp"
#include "inspect/objects.hpp"

namespace nearfar::inspect {

struct ObjectChunks {
  std::uint64_t count = 0; ///< of chunks with a complete head
  std::uint64_t objects = 0;
};

/// Walks directory and chunks, and passes on every allocated object, by ascending offset; its type
/// is an index of store.types. Damage is a chunk that leaves the heap, overlaps another, or
/// contradicts its head.
ObjectChunks walk_object_chunks(const PoolView& view, const Descriptor& descriptor,
                                const ObjectStore& store, Findings& findings, ObjectSink& sink);

} // namespace nearfar::inspect
