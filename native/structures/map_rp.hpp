// A Robin Hood hash map in one array of slots, changed by libpmemobj's reserve and publish, after
// PMDK's hashmap_rp.
//
// Invariants    slot 0 is never used; an entry lies at or after its home slot, at most
//               `longest_probe` further, with no slot that was never used between; `entries` is
//               the number of slots in use.
// Durability    an insertion or removal writes all words it changes in one published redo log.
//               Growth fills and flushes a reserved array, then publishes it, its capacity and the
//               end of the old one at once; a crash before leaves the old array as it was.
// Growth        all at once, at half full; halves likewise, below a quarter: a pause that
//               grows with the map (benchmarks/results has figures). It is kept, because this
//               map is the reference for PMDK's method: entries moved one by one would each have to
//               be published, and be found in two arrays. `map` has no such pause.
// Thread safety, errors  structures/pmdk_map.hpp; os_error if no slot is found for an entry
//               within `longest_probe` slots.
#pragma once

#include "structures/pmdk_map.hpp"

namespace nearfar::structures {

template <class ObjectPolicy>
class RobinHood {
public:
  using Objects = ObjectPolicy; ///< PoolObjects or DramObjects

  explicit RobinHood(Objects& objects) : objects_(objects) {}
  Status create(PMEMoid& root);
  Status open(PMEMoid root);

  Result<bool> insert(std::uint64_t key, PMEMoid value);
  std::optional<PMEMoid> get(std::uint64_t key) const;
  Result<std::optional<PMEMoid>> remove(std::uint64_t key);
  std::uint64_t size() const { return header_->entries; }
  std::uint64_t capacity() const { return header_->capacity; }

  template <class Visit>
  void for_each(Visit visit) const {
    const auto* slot = Objects::template at<MapSlot>(header_->slots);
    for (const MapSlot* end = slot + header_->capacity; slot != end; ++slot)
      if (!slot->empty()) visit(slot->key, slot->value);
  }
  const char* check() const;

private:
  static constexpr std::uint64_t removed_bit = std::uint64_t{1} << 63; ///< of `home`: removed

  struct Header {
    std::uint64_t entries;
    std::uint64_t capacity;
    std::uint64_t grow_at;
    PMEMoid slots;
  };
  struct MapSlot {
    std::uint64_t key;
    PMEMoid value;
    std::uint64_t home; ///< number of the entry's home slot; 0: this slot was never used

    bool empty() const { return home == 0 || (home & removed_bit) != 0; }
  };
  struct Change;
  enum class Placed : unsigned char { fresh, replaced, nowhere };

  template <class Writer>
  static Placed place(const Header& table, std::uint64_t key, PMEMoid value, Writer& writer);
  static std::uint64_t find(const Header& table, std::uint64_t key);
  Status rebuild(std::uint64_t capacity);

  Objects& objects_;
  Header* header_ = nullptr;
};

template <class Objects>
using MapRp = PmdkMap<RobinHood<Objects>>;

} // namespace nearfar::structures
