// A hash map of doubly linked buckets, changed by libpmemobj's atomic list operations, after PMDK's
// hashmap_atomic.
//
// Invariants    every entry is in exactly one bucket's circular list; `entries` is their number
//               unless `entries_dirty`; `growing` is null but while buckets are being replaced, and
//               then every entry is in either array.
// Durability    insertion: entries_dirty = 1; the entry's contents, then allocation and links in
//               one redo log of libpmemobj; entries; entries_dirty = 0. Removal likewise. Growth:
//               the new array, linked at `growing`; entries moved one by one, each by one redo log;
//               the old array freed; `buckets` (pool, then offset), then `growing`. open() finishes
//               what was interrupted.
// Growth        all at once, within the insertion that made a chain too long, or the removal that
//               left fewer entries than buckets.
// Thread safety none; see structures/pmdk_maps.hpp.
#pragma once

#include "structures/pmdk_maps.hpp"

namespace nearfar::structures {

class MapAtomic {
public:
  /// Makes an empty map and stores its handle at `where`, a place in the pool.
  static Result<MapAtomic> create(PMEMobjpool* pool, PMEMoid* where);

  /// Takes a map up again and finishes a growth or a count that a crash interrupted.
  static Result<MapAtomic> open(PMEMobjpool* pool, PMEMoid map);

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
  struct Contents;

  MapAtomic(PMEMobjpool* pool, Header* header) : pool_(pool), header_(header) {}

  static int fill_buckets(PMEMobjpool* pool, void* object, void* count);
  static int fill_entry(PMEMobjpool* pool, void* object, void* contents);
  template <class T>
  void set(T& field, T value);
  void set_handle(PMEMoid& field, PMEMoid value);
  Status start();
  Status recover();
  Status rebuild(std::uint64_t count);
  Status finish_rebuild();
  std::uint64_t count_entries() const;
  PMEMoid find(std::uint64_t key, std::uint64_t& chain) const;

  PMEMobjpool* pool_;
  Header* header_;
};

} // namespace nearfar::structures
