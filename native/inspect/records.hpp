// The redo log of a typed pool: the records that recovery would apply (poolformat/record.hpp).
#pragma once

#include "inspect/object_store.hpp"

namespace nearfar::inspect {

struct Records {
  std::uint64_t count = 0;   ///< that recovery would apply
  std::uint64_t entries = 0; ///< in them
  bool replayed = true;      ///< false: they change more than is replayed here
};

/// Reads the ring from its start, as recovery does, and applies it to `patched`. Damage is a record
/// that passes its checksum and changes bytes outside of the pool.
Records replay_records(const PoolView& view, const ObjectStore& store, PatchedView& patched,
                       Findings& findings);

} // namespace nearfar::inspect
