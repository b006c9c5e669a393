#include "structures/map_atomic.hpp"

#include <cstddef>

namespace nearfar::structures {

namespace {

constexpr std::uint64_t header_type = 1000; // type numbers identify objects for pmempool info
constexpr std::uint64_t segment_type = 1001;
constexpr std::uint64_t entry_type = 1002;

} // namespace

template <class Objects>
struct AtomicChains<Objects>::Contents {
  const Objects* objects;
  std::uint64_t key;
  PMEMoid value;
};

template <class Objects>
void AtomicChains<Objects>::set(std::uint64_t& word, std::uint64_t value) {
  word = value;
  objects_.persist(&word, sizeof word);
}

template <class Objects>
int AtomicChains<Objects>::fill_entry(PMEMobjpool*, void* object, void* contents) {
  auto* made = static_cast<MapEntry*>(object);
  const auto* wanted = static_cast<const Contents*>(contents);
  *made = {wanted->key, wanted->value, {}};
  wanted->objects->persist(made, sizeof *made);
  return 0;
}

template <class Objects>
Status AtomicChains<Objects>::create(PMEMoid& root) {
  if (Status made = objects_.allocate(root, sizeof(Header), header_type, true); !made) return made;
  header_ = Objects::template at<Header>(root);
  return start();
}

/// Makes the first buckets, also after a crash that interrupted this.
template <class Objects>
Status AtomicChains<Objects>::start() {
  header_->hash = {};
  objects_.persist(&header_->hash, sizeof header_->hash);
  PMEMoid& segment = header_->buckets.segment[0];
  if (segment.off == 0)
    if (Status made =
            objects_.allocate(segment, Buckets<ListHead>::bytes_of(0), segment_type, true);
        !made)
      return made;
  set(header_->buckets.count, initial_buckets);
  return Done{};
}

template <class Objects>
Status AtomicChains<Objects>::open(PMEMoid root) {
  header_ = Objects::template at<Header>(root);
  std::uint64_t& buckets = header_->buckets.count;
  if (buckets == 0)
    if (Status started = start(); !started) return started;
  if (buckets > initial_buckets)
    if (Status filled = fill_from_parent(buckets - 1); !filled) return filled;
  if (header_->entries_dirty != 0) {
    std::uint64_t found = 0;
    for_each([&](std::uint64_t, PMEMoid) { ++found; });
    set(header_->entries, found);
    set(header_->entries_dirty, 0);
  }
  return Done{};
}

template <class Objects>
PMEMoid AtomicChains<Objects>::find(std::uint64_t bucket, std::uint64_t key) const {
  const PMEMoid first = head(bucket).first;
  for (PMEMoid at = first; at.off != 0;) {
    const auto* entry = Objects::template at<MapEntry>(at);
    if (entry->key == key) return at;
    at = entry->links.next;
    if (at.off == first.off) break;
  }
  return OID_NULL;
}

template <class Objects>
std::optional<PMEMoid> AtomicChains<Objects>::get(std::uint64_t key) const {
  const PMEMoid found = find(bucket_of_key(key), key);
  if (found.off == 0) return std::nullopt;
  return Objects::template at<MapEntry>(found)->value;
}

template <class Objects>
Result<bool> AtomicChains<Objects>::insert(std::uint64_t key, PMEMoid value) {
  const std::uint64_t bucket = bucket_of_key(key);
  if (find(bucket, key).off != 0) return false;
  set(header_->entries_dirty, 1);
  Contents contents{&objects_, key, value};
  const PMEMoid made = objects_.list_insert(head(bucket), offsetof(MapEntry, links),
                                            sizeof(MapEntry), entry_type, fill_entry, &contents);
  if (made.off == 0) {
    const Error failed = pool_error("inserting an entry");
    set(header_->entries_dirty, 0);
    return failed;
  }
  set(header_->entries, header_->entries + 1);
  set(header_->entries_dirty, 0);
  if (wants_split(header_->entries, header_->buckets.count))
    if (Status grown = split(); !grown && grown.error().code != Errc::no_space)
      return grown.error(); // without room for more buckets the map is slower, and whole
  return true;
}

template <class Objects>
Result<std::optional<PMEMoid>> AtomicChains<Objects>::remove(std::uint64_t key) {
  const std::uint64_t bucket = bucket_of_key(key);
  const PMEMoid found = find(bucket, key);
  if (found.off == 0) return std::optional<PMEMoid>();
  const std::optional<PMEMoid> value(Objects::template at<MapEntry>(found)->value);
  set(header_->entries_dirty, 1);
  if (!objects_.list_remove(head(bucket), offsetof(MapEntry, links), found, sizeof(MapEntry)))
    return pool_error("removing an entry");
  set(header_->entries, header_->entries - 1);
  set(header_->entries_dirty, 0);
  if (wants_join(header_->entries, header_->buckets.count))
    if (Status joined = join(); !joined) return joined.error();
  return value;
}

template <class Objects>
Status AtomicChains<Objects>::split() {
  const std::uint64_t made = header_->buckets.count;
  const unsigned number = Buckets<ListHead>::segment_of(made);
  PMEMoid& segment = header_->buckets.segment[number];
  if (segment.off == 0)
    if (Status taken =
            objects_.allocate(segment, Buckets<ListHead>::bytes_of(number), segment_type, false);
        !taken)
      return taken;
  head(made) = {};
  objects_.persist(&head(made), sizeof(ListHead));
  set(header_->buckets.count, made + 1);
  return fill_from_parent(made);
}

template <class Objects>
Status AtomicChains<Objects>::join() {
  const std::uint64_t last = header_->buckets.count - 1;
  bool moved = true;
  each_in(last,
          [&](PMEMoid at, const MapEntry&) { moved = moved && move(last, parent_of(last), at); });
  if (!moved) return pool_error("moving an entry");
  set(header_->buckets.count, last);
  return Done{};
}

/// Moves the entries that belong to the last bucket from its parent to it.
template <class Objects>
Status AtomicChains<Objects>::fill_from_parent(std::uint64_t bucket) {
  bool moved = true;
  each_in(parent_of(bucket), [&](PMEMoid at, const MapEntry& entry) {
    if (bucket_of_key(entry.key) == bucket) moved = moved && move(parent_of(bucket), bucket, at);
  });
  if (!moved) return pool_error("moving an entry");
  return Done{};
}

template <class Objects>
bool AtomicChains<Objects>::move(std::uint64_t from, std::uint64_t to, PMEMoid entry) {
  return objects_.list_move(head(from), head(to), offsetof(MapEntry, links), entry);
}

template <class Objects>
const char* AtomicChains<Objects>::check() const {
  const char* wrong = nullptr;
  std::uint64_t found = 0;
  for (std::uint64_t bucket = 0; bucket < header_->buckets.count; ++bucket)
    each_in(bucket, [&](PMEMoid at, const MapEntry& entry) {
      ++found;
      if (bucket_of_key(entry.key) != bucket) wrong = "an entry lies in another's bucket";
      if (Objects::template at<MapEntry>(entry.links.next)->links.previous.off != at.off)
        wrong = "an entry is not the one before the one after it";
    });
  return wrong == nullptr && found != header_->entries ? "it counts more or fewer than it holds"
                                                       : wrong;
}

template class AtomicChains<PoolObjects>;
template class AtomicChains<DramObjects>;

} // namespace nearfar::structures
