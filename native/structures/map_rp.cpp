#include "structures/map_rp.hpp"

#include <array>

namespace nearfar::structures {

namespace {

constexpr std::uint64_t header_type = 1008; // type numbers tell objects apart for pmempool info
constexpr std::uint64_t slots_type = 1009;
constexpr std::uint64_t initial_capacity = 16;
constexpr std::size_t longest_probe = 150;
constexpr std::uint64_t removed_bit = std::uint64_t{1} << 63; // of a slot's hash: was used once

std::uint64_t fullest(std::uint64_t capacity) { return capacity / 2; }

/// The slot an entry belongs in: MurmurHash3's 64-bit finalizer, cut to the capacity, a power of
/// two. Never 0, which marks a slot that was never used.
std::uint64_t home(std::uint64_t key, std::uint64_t capacity) {
  key ^= key >> 33;
  key *= 0xff51afd7ed558ccdu;
  key ^= key >> 33;
  key *= 0xc4ceb9fe1a85ec53u;
  key ^= key >> 33;
  key &= capacity - 1;
  return key == 0 ? 1 : key;
}

std::uint64_t next_slot(std::uint64_t slot, std::uint64_t capacity) {
  slot = (slot + 1) & (capacity - 1);
  return slot == 0 ? 1 : slot;
}

/// How far a slot is from an entry's home. The mark of a removed one falls to the mask.
std::uint64_t distance(std::uint64_t hash, std::uint64_t slot, std::uint64_t capacity) {
  return (slot + capacity - hash) & (capacity - 1);
}

} // namespace

struct MapRp::Header {
  std::uint64_t entries;
  std::uint64_t capacity;
  std::uint64_t grow_at;
  PMEMoid slots;
};

struct MapRp::Slot {
  std::uint64_t key;
  PMEMoid value;
  std::uint64_t hash; ///< 0: never used

  bool empty() const { return hash == 0 || (hash & removed_bit) != 0; }
};

/// The words an operation changes, gathered to be published at once.
struct MapRp::Actions {
  PMEMobjpool* pool;
  Header* header;
  std::size_t count = 0;
  std::array<pobj_action, 4 * longest_probe + 5> list; // left unset: 38 KiB

  Actions(PMEMobjpool* p, Header* h) : pool(p), header(h) {}

  void set(std::uint64_t& word, std::uint64_t value) {
    pmemobj_set_value(pool, &list[count++], &word, value);
  }
  void write(Slot& slot, const Slot& value) {
    set(slot.key, value.key);
    set(slot.value.pool_uuid_lo, value.value.pool_uuid_lo);
    set(slot.value.off, value.value.off);
    set(slot.hash, value.hash);
  }
  void count_one() { set(header->entries, header->entries + 1); }
  Status publish() {
    if (pmemobj_publish(pool, list.data(), count) != 0) return pool_error("publishing a change");
    return Done{};
  }
  void cancel() { pmemobj_cancel(pool, list.data(), count); }
};

/// Puts an entry in its place and moves on those it displaces. The writer's write() must not show
/// before all is done, or must show at once: each slot is looked at once only.
template <class Writer>
MapRp::Placed MapRp::place(const Header& table, std::uint64_t key, PMEMoid value, Writer& writer) {
  Slot carried{key, value, home(key, table.capacity)};
  std::uint64_t at = carried.hash;
  std::uint64_t carried_distance = 0;
  for (std::size_t probe = 0; probe < longest_probe; ++probe) {
    Slot& slot = direct<Slot>(table.slots)[at];
    if (!slot.empty() && slot.key == carried.key) {
      writer.write(slot, carried);
      return Placed::replaced;
    }
    const std::uint64_t theirs = distance(slot.hash, at, table.capacity);
    if (slot.hash == 0 || (theirs < carried_distance && slot.empty())) {
      writer.count_one();
      writer.write(slot, carried);
      return Placed::fresh;
    }
    if (theirs < carried_distance) { // the one that is nearer to its home moves on
      const Slot displaced = slot;
      writer.write(slot, carried);
      carried = displaced;
      carried_distance = theirs;
    }
    at = next_slot(at, table.capacity);
    ++carried_distance;
  }
  return Placed::nowhere;
}

/// The slot of a key, or 0.
std::uint64_t MapRp::find(const Header& table, std::uint64_t key) {
  const std::uint64_t hash = home(key, table.capacity);
  std::uint64_t at = hash;
  for (std::uint64_t probe = 1;; ++probe) {
    const Slot& slot = direct<Slot>(table.slots)[at];
    if (slot.hash == hash && slot.key == key) return at;
    at = next_slot(at, table.capacity);
    if (slot.hash == 0 || probe > distance(slot.hash, at, table.capacity)) return 0;
  }
}

Result<MapRp> MapRp::create(PMEMobjpool* pool, PMEMoid* where) {
  std::array<pobj_action, 4> actions;
  const PMEMoid map = pmemobj_reserve(pool, &actions[0], sizeof(Header), header_type);
  if (map.off == 0) return pool_error("reserving the map");
  const PMEMoid slots = pmemobj_xreserve(pool, &actions[1], initial_capacity * sizeof(Slot),
                                         slots_type, POBJ_XALLOC_ZERO);
  if (slots.off == 0) {
    const Error failed = pool_error("reserving slots");
    pmemobj_cancel(pool, actions.data(), 1);
    return failed;
  }
  auto* header = direct<Header>(map);
  *header = {0, initial_capacity, fullest(initial_capacity), slots};
  pmemobj_persist(pool, header, sizeof *header);
  pmemobj_set_value(pool, &actions[2], &where->pool_uuid_lo, map.pool_uuid_lo);
  pmemobj_set_value(pool, &actions[3], &where->off, map.off);
  if (pmemobj_publish(pool, actions.data(), actions.size()) != 0)
    return pool_error("publishing the map");
  return MapRp(pool, header);
}

Result<MapRp> MapRp::open(PMEMobjpool* pool, PMEMoid map) {
  return MapRp(pool, direct<Header>(map));
}

std::uint64_t MapRp::size() const { return header_->entries; }

std::uint64_t MapRp::capacity() const { return header_->capacity; }

PMEMoid MapRp::get(std::uint64_t key) const {
  const std::uint64_t at = find(*header_, key);
  return at == 0 ? OID_NULL : direct<Slot>(header_->slots)[at].value;
}

Result<bool> MapRp::insert(std::uint64_t key, PMEMoid value) {
  if (header_->entries + 1 >= header_->grow_at)
    if (Status grown = rebuild(header_->capacity * 2); !grown) return grown.error();
  Actions actions(pool_, header_);
  const Placed placed = place(*header_, key, value, actions);
  if (placed == Placed::nowhere) {
    actions.cancel();
    return Error::make(Errc::os_error, "no place for a key within %zu slots", longest_probe)
        .try_next("use map, which has no such limit");
  }
  if (Status published = actions.publish(); !published) return published.error();
  return placed == Placed::fresh;
}

Result<PMEMoid> MapRp::remove(std::uint64_t key) {
  const std::uint64_t at = find(*header_, key);
  if (at == 0) return OID_NULL;
  Slot& slot = direct<Slot>(header_->slots)[at];
  const PMEMoid value = slot.value;
  Actions actions(pool_, header_);
  actions.write(slot, {0, OID_NULL, slot.hash | removed_bit});
  actions.set(header_->entries, header_->entries - 1);
  if (Status published = actions.publish(); !published) return published.error();
  const std::uint64_t half = header_->capacity / 2;
  if (fullest(half) >= initial_capacity && header_->entries < fullest(half))
    if (Status shrunk = rebuild(half); !shrunk && shrunk.error().code != Errc::no_space)
      return shrunk.error(); // without room for a second array the map is larger, and whole
  return value;
}

Status MapRp::rebuild(std::uint64_t capacity) {
  /// Writes at once: nobody sees the new array before it is published.
  struct Filler {
    Header* header;
    void write(Slot& slot, const Slot& value) { slot = value; }
    void count_one() { ++header->entries; }
  };
  std::array<pobj_action, 6> actions;
  const std::size_t bytes = capacity * sizeof(Slot);
  const PMEMoid slots = pmemobj_xreserve(pool_, &actions[0], bytes, slots_type, POBJ_XALLOC_ZERO);
  if (slots.off == 0) return pool_error("reserving slots");
  Header fresh{0, capacity, fullest(capacity), slots};
  Filler filler{&fresh};
  const auto* old = direct<Slot>(header_->slots);
  for (const Slot* slot = old; slot != old + header_->capacity; ++slot)
    if (!slot->empty() && place(fresh, slot->key, slot->value, filler) == Placed::nowhere) {
      pmemobj_cancel(pool_, actions.data(), 1);
      return Error::make(Errc::os_error, "no place for a key within %zu slots", longest_probe)
          .try_next("use map, which has no such limit");
    }
  pmemobj_persist(pool_, direct<Slot>(slots), bytes);
  pmemobj_defer_free(pool_, header_->slots, &actions[1]);
  pmemobj_set_value(pool_, &actions[2], &header_->capacity, capacity);
  pmemobj_set_value(pool_, &actions[3], &header_->grow_at, fullest(capacity));
  pmemobj_set_value(pool_, &actions[4], &header_->slots.pool_uuid_lo, slots.pool_uuid_lo);
  pmemobj_set_value(pool_, &actions[5], &header_->slots.off, slots.off);
  if (pmemobj_publish(pool_, actions.data(), actions.size()) != 0)
    return pool_error("publishing the slots");
  return Done{};
}

} // namespace nearfar::structures
