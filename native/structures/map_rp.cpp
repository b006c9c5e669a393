#include "structures/map_rp.hpp"

#include "structures/hash.hpp"

namespace nearfar::structures {

namespace {

constexpr std::uint64_t header_type = 1008; // type numbers identify objects for pmempool info
constexpr std::uint64_t slots_type = 1009;
constexpr std::uint64_t initial_capacity = 16;
constexpr std::size_t longest_probe = 150;

std::uint64_t fullest(std::uint64_t capacity) { return capacity / 2; }

/// The home slot of an entry; the capacity is a power of two. Never 0, which marks a slot that was
/// never used.
std::uint64_t home_of(std::uint64_t key, std::uint64_t capacity) {
  const std::uint64_t slot = mix(key) & (capacity - 1);
  return slot == 0 ? 1 : slot;
}

std::uint64_t next_slot(std::uint64_t slot, std::uint64_t capacity) {
  slot = (slot + 1) & (capacity - 1);
  return slot == 0 ? 1 : slot;
}

/// Distance of a slot from an entry's home. The mask clears the mark of a removed entry.
std::uint64_t distance(std::uint64_t home, std::uint64_t slot, std::uint64_t capacity) {
  return (slot + capacity - home) & (capacity - 1);
}

Error no_place() {
  return Error::make(Errc::os_error, "no place for a key within %zu slots", longest_probe)
      .try_next("use map, which has no such limit");
}

} // namespace

/// The words that an operation changes, collected to be published at once.
template <class Objects>
struct RobinHood<Objects>::Change {
  Header* header;
  typename Objects::template Batch<4 * longest_probe + 5> batch;

  Change(Objects& objects, Header* h) : header(h), batch(objects) {}

  void write(MapSlot& slot, const MapSlot& value) {
    batch.set(slot.key, value.key);
    batch.set(slot.value.pool_uuid_lo, value.value.pool_uuid_lo);
    batch.set(slot.value.off, value.value.off);
    batch.set(slot.home, value.home);
  }
  void count_one() { batch.set(header->entries, header->entries + 1); }
};

/// Inserts an entry and moves those that it displaces. The writer's write() must have an effect
/// either only after all is done, or immediately: each slot is read only once.
template <class Objects>
template <class Writer>
auto RobinHood<Objects>::place(const Header& table, std::uint64_t key, PMEMoid value,
                               Writer& writer) -> Placed {
  MapSlot carried{key, value, home_of(key, table.capacity)};
  std::uint64_t at = carried.home;
  std::uint64_t carried_distance = 0;
  for (std::size_t probe = 0; probe < longest_probe; ++probe) {
    MapSlot& slot = Objects::template at<MapSlot>(table.slots)[at];
    if (!slot.empty() && slot.key == carried.key) {
      writer.write(slot, carried);
      return Placed::replaced;
    }
    const std::uint64_t theirs = distance(slot.home, at, table.capacity);
    if (slot.home == 0 || (theirs < carried_distance && slot.empty())) {
      writer.count_one();
      writer.write(slot, carried);
      return Placed::fresh;
    }
    if (theirs < carried_distance) { // the one that is nearer to its home moves on
      const MapSlot displaced = slot;
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
template <class Objects>
std::uint64_t RobinHood<Objects>::find(const Header& table, std::uint64_t key) {
  const std::uint64_t home = home_of(key, table.capacity);
  std::uint64_t at = home;
  for (std::uint64_t probe = 1;; ++probe) {
    const MapSlot& slot = Objects::template at<MapSlot>(table.slots)[at];
    if (slot.home == home && slot.key == key) return at;
    at = next_slot(at, table.capacity);
    if (slot.home == 0 || probe > distance(slot.home, at, table.capacity)) return 0;
  }
}

template <class Objects>
Status RobinHood<Objects>::create(PMEMoid& root) {
  typename Objects::template Batch<4> batch(objects_);
  const PMEMoid map = batch.reserve(sizeof(Header), header_type, false);
  if (map.off == 0) return pool_error("reserving the map");
  const PMEMoid slots = batch.reserve(initial_capacity * sizeof(MapSlot), slots_type, true);
  if (slots.off == 0) {
    const Error failed = pool_error("reserving slots");
    batch.cancel();
    return failed;
  }
  header_ = Objects::template at<Header>(map);
  *header_ = {0, initial_capacity, fullest(initial_capacity), slots};
  objects_.persist(header_, sizeof *header_);
  batch.set(root.pool_uuid_lo, map.pool_uuid_lo);
  batch.set(root.off, map.off);
  return batch.publish();
}

template <class Objects>
Status RobinHood<Objects>::open(PMEMoid root) {
  header_ = Objects::template at<Header>(root);
  return Done{};
}

template <class Objects>
std::optional<PMEMoid> RobinHood<Objects>::get(std::uint64_t key) const {
  const std::uint64_t at = find(*header_, key);
  if (at == 0) return std::nullopt;
  return Objects::template at<MapSlot>(header_->slots)[at].value;
}

template <class Objects>
Result<bool> RobinHood<Objects>::insert(std::uint64_t key, PMEMoid value) {
  if (header_->entries + 1 >= header_->grow_at)
    if (Status grown = rebuild(header_->capacity * 2); !grown) return grown.error();
  Change change(objects_, header_);
  const Placed placed = place(*header_, key, value, change);
  if (placed == Placed::nowhere) {
    change.batch.cancel();
    return no_place();
  }
  if (Status published = change.batch.publish(); !published) return published.error();
  return placed == Placed::fresh;
}

template <class Objects>
Result<std::optional<PMEMoid>> RobinHood<Objects>::remove(std::uint64_t key) {
  const std::uint64_t at = find(*header_, key);
  if (at == 0) return std::optional<PMEMoid>();
  MapSlot& slot = Objects::template at<MapSlot>(header_->slots)[at];
  const std::optional<PMEMoid> value(slot.value);
  Change change(objects_, header_);
  change.write(slot, {0, OID_NULL, slot.home | removed_bit});
  change.batch.set(header_->entries, header_->entries - 1);
  if (Status published = change.batch.publish(); !published) return published.error();
  const std::uint64_t half = header_->capacity / 2;
  if (fullest(half) >= initial_capacity && header_->entries < fullest(half))
    if (Status shrunk = rebuild(half); !shrunk && shrunk.error().code != Errc::no_space)
      return shrunk.error(); // without room for a second array the map is larger, and whole
  return value;
}

template <class Objects>
Status RobinHood<Objects>::rebuild(std::uint64_t capacity) {
  /// Writes immediately: the new array is invisible before it is published.
  struct Filler {
    Header* header;
    void write(MapSlot& slot, const MapSlot& value) { slot = value; }
    void count_one() { ++header->entries; }
  };
  typename Objects::template Batch<6> batch(objects_);
  const std::size_t bytes = capacity * sizeof(MapSlot);
  const PMEMoid slots = batch.reserve(bytes, slots_type, true);
  if (slots.off == 0) return pool_error("reserving slots");
  Header fresh{0, capacity, fullest(capacity), slots};
  Filler filler{&fresh};
  bool placed = true;
  for_each([&](std::uint64_t key, PMEMoid value) {
    placed = placed && place(fresh, key, value, filler) != Placed::nowhere;
  });
  if (!placed) {
    batch.cancel();
    return no_place();
  }
  objects_.persist(Objects::template at<MapSlot>(slots), bytes);
  batch.free(header_->slots, header_->capacity * sizeof(MapSlot));
  batch.set(header_->capacity, capacity);
  batch.set(header_->grow_at, fullest(capacity));
  batch.set(header_->slots.pool_uuid_lo, slots.pool_uuid_lo);
  batch.set(header_->slots.off, slots.off);
  return batch.publish();
}

template <class Objects>
const char* RobinHood<Objects>::check() const {
  const auto* slots = Objects::template at<MapSlot>(header_->slots);
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < header_->capacity; ++i) {
    if (slots[i].empty()) continue;
    ++found;
    if (i == 0 || find(*header_, slots[i].key) != i) return "a search does not find an entry";
  }
  return found == header_->entries ? nullptr : "it counts more or fewer than it holds";
}

template class RobinHood<PoolObjects>;
template class RobinHood<DramObjects>;

} // namespace nearfar::structures
