// A hash map of singly linked buckets, changed by libpmemobj's undo transactions, after PMDK's
// hashmap_tx.
//
// Invariants    every entry is in exactly one chain; `entries` is their number.
// Durability    each operation is one transaction: what it overwrites is logged before, what it
//               allocated or freed becomes so at its commit. Inside a transaction of the caller it
//               becomes durable with that one, or is undone with it.
// Growth        all at once, in one transaction of its own that logs every entry's link.
// Thread safety none; see structures/pmdk_maps.hpp.
#pragma once

#include "structures/pmdk_maps.hpp"

namespace nearfar::structures {

class MapTx {
public:
  /// Makes an empty map and stores its handle at `where`, a place in the pool.
  static Result<MapTx> create(PMEMobjpool* pool, PMEMoid* where);
  /// Takes a map up again; libpmemobj has undone what was under way.
  static Result<MapTx> open(PMEMobjpool* pool, PMEMoid map);

  /// False if the key was there already; its value stays. Errors: no_space.
  Result<bool> insert(std::uint64_t key, PMEMoid value);
  /// Null handle if there is no such key.
  PMEMoid get(std::uint64_t key) const;
  /// The value that was there, or a null handle. The object it names is the caller's.
  Result<PMEMoid> remove(std::uint64_t key);
  std::uint64_t size() const;
  std::uint64_t buckets() const;

private:
  struct Header;
  struct Buckets;
  struct Entry;

  MapTx(PMEMobjpool* pool, Header* header) : pool_(pool), header_(header) {}

  Status rebuild(std::uint64_t count);
  Status move_entries(std::uint64_t count);

  PMEMobjpool* pool_;
  Header* header_;
};

} // namespace nearfar::structures
