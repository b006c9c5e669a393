// The heads of nearfar's own pools: root object, types, and the offsets of log and chunks
// (poolformat/heads.hpp). Read as untrusted bytes.
#pragma once

#include <string>
#include <vector>

#include "inspect/descriptor.hpp"
#include "poolformat/heads.hpp"

namespace nearfar::inspect {

/// A type of a typed pool, with the members that link other objects.
struct StoreType {
  std::string name;
  Offset bytes = 0;
  bool secret = false;
  std::vector<poolformat::LinkEntry> links; ///< each lies in the object, each target is a type
};

struct ObjectStore {
  bool is_nearfar = false; ///< its root object begins with a PoolHead
  bool is_typed = false;   ///< and its owner is the typed layer
  bool usable = false;     ///< types, log and chunks may be looked at
  poolformat::Path path = poolformat::Path::redo;
  Offset root = 0; ///< where the program's root, of type 0, lies
  std::vector<StoreType> types;
  Offset log = 0;          ///< where the ring of the redo log lies
  std::uint64_t lines = 0; ///< of the ring
  std::uint64_t start = 0; ///< number of the oldest record that is needed
  Offset directory = 0;    ///< first page of the directory of chunks; 0: none yet
};

/// Reads and checks them, after recovery by libpmemobj. Reports nothing for a pool of another
/// program.
ObjectStore read_object_store(const PoolView& view, const Descriptor& descriptor,
                              Findings& findings);

} // namespace nearfar::inspect
