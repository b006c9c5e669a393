// A Robin Hood hash map in one array of slots, changed by libpmemobj's reserve and publish, after
// PMDK's hashmap_rp.
//
// Invariants    slot 0 is never used; an entry lies at or after the slot of its hash, at most
//               `longest_probe` further, with no slot that was never used between; `entries` is
//               the number of slots in use.
// Durability    an insertion or removal writes all words it changes in one published redo log.
//               Growth fills and flushes a reserved array, then publishes it, its capacity and the
//               end of the old one at once; a crash before leaves the old array as it was.
// Growth        all at once, at half full; halves likewise, below a quarter.
// Thread safety none; see structures/pmdk_maps.hpp.
#pragma once

#include "structures/pmdk_maps.hpp"

namespace nearfar::structures {

class MapRp {
public:
  /// Makes an empty map and stores its handle at `where`, a place in the pool.
  static Result<MapRp> create(PMEMobjpool* pool, PMEMoid* where);
  /// Takes a map up again; libpmemobj has finished or dropped what was under way.
  static Result<MapRp> open(PMEMobjpool* pool, PMEMoid map);

  /// False if the key was there already: its value is replaced. Errors: no_space, and os_error
  /// where no place is found within `longest_probe` slots.
  Result<bool> insert(std::uint64_t key, PMEMoid value);
  /// Null handle if there is no such key.
  PMEMoid get(std::uint64_t key) const;
  /// The value that was there, or a null handle. The object it names is the caller's.
  Result<PMEMoid> remove(std::uint64_t key);
  std::uint64_t size() const;
  std::uint64_t capacity() const;

private:
  struct Header;
  struct Slot;
  struct Actions;
  enum class Placed : unsigned char { fresh, replaced, nowhere };

  MapRp(PMEMobjpool* pool, Header* header) : pool_(pool), header_(header) {}

  template <class Writer>
  static Placed place(const Header& table, std::uint64_t key, PMEMoid value, Writer& writer);
  static std::uint64_t find(const Header& table, std::uint64_t key);
  Status rebuild(std::uint64_t capacity);

  PMEMobjpool* pool_;
  Header* header_;
};

} // namespace nearfar::structures
