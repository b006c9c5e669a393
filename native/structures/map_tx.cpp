#include "structures/map_tx.hpp"

namespace nearfar::structures {

namespace {

constexpr std::uint64_t header_type = 1004; // type numbers identify objects for pmempool info
constexpr std::uint64_t segment_type = 1005;
constexpr std::uint64_t entry_type = 1006;

} // namespace

template <class Objects>
Status TxChains<Objects>::create(PMEMoid& root) {
  Status made = objects_.transact([&]() -> Status {
    const PMEMoid map = objects_.tx_allocate(sizeof(Header), header_type);
    const PMEMoid segment = objects_.tx_allocate(Buckets<PMEMoid>::bytes_of(0), segment_type);
    if (map.off == 0 || segment.off == 0) return pool_error("allocating the map");
    if (!objects_.log(root)) return pool_error("logging the map's handle");
    auto* header = Objects::template at<Header>(map);
    *header = {};
    header->buckets.count = initial_buckets;
    header->buckets.segment[0] = segment;
    for (std::uint64_t i = 0; i < initial_buckets; ++i)
      Objects::template at<PMEMoid>(segment)[i] = OID_NULL;
    root = map;
    return Done{};
  });
  if (!made) return made;
  return open(root);
}

template <class Objects>
Status TxChains<Objects>::open(PMEMoid root) {
  header_ = Objects::template at<Header>(root);
  return Done{};
}

template <class Objects>
PMEMoid* TxChains<Objects>::find(std::uint64_t key) const {
  PMEMoid* link = &head(bucket_of_key(key));
  while (link->off != 0) {
    auto* entry = Objects::template at<MapEntry>(*link);
    if (entry->key == key) break;
    link = &entry->next;
  }
  return link;
}

template <class Objects>
std::optional<PMEMoid> TxChains<Objects>::get(std::uint64_t key) const {
  const PMEMoid found = *find(key);
  if (found.off == 0) return std::nullopt;
  return Objects::template at<MapEntry>(found)->value;
}

template <class Objects>
Result<bool> TxChains<Objects>::insert(std::uint64_t key, PMEMoid value) {
  if (find(key)->off != 0) return false;
  PMEMoid& first = head(bucket_of_key(key));
  Status inserted = objects_.transact([&]() -> Status {
    if (!objects_.log(first) || !objects_.log(header_->entries))
      return pool_error("logging a bucket");
    const PMEMoid made = objects_.tx_allocate(sizeof(MapEntry), entry_type);
    if (made.off == 0) return pool_error("allocating an entry");
    *Objects::template at<MapEntry>(made) = {key, value, first};
    first = made;
    ++header_->entries;
    return Done{};
  });
  if (!inserted) return inserted.error();
  if (wants_split(header_->entries, header_->buckets.count))
    if (Status grown = split(); !grown) return grown.error();
  return true;
}

template <class Objects>
Result<std::optional<PMEMoid>> TxChains<Objects>::remove(std::uint64_t key) {
  PMEMoid& link = *find(key);
  const PMEMoid gone = link;
  if (gone.off == 0) return std::optional<PMEMoid>();
  const MapEntry entry = *Objects::template at<MapEntry>(gone);
  Status removed = objects_.transact([&]() -> Status {
    if (!objects_.log(link) || !objects_.log(header_->entries) ||
        !objects_.tx_free(gone, sizeof(MapEntry)))
      return pool_error("removing an entry");
    link = entry.next;
    --header_->entries;
    return Done{};
  });
  if (!removed) return removed.error();
  if (wants_join(header_->entries, header_->buckets.count))
    if (Status joined = join(); !joined) return joined.error();
  return std::optional<PMEMoid>(entry.value);
}

/// Logs the head of a chain and all links in it.
template <class Objects>
bool TxChains<Objects>::log_chain(PMEMoid& head) const {
  bool logged = objects_.log(head);
  for (PMEMoid at = head; at.off != 0 && logged;) {
    auto* entry = Objects::template at<MapEntry>(at);
    logged = objects_.log(entry->next);
    at = entry->next;
  }
  return logged;
}

/// Without memory for it there are fewer buckets: the map is slower, but correct. It must not fail
/// then, because that would undo the caller's transaction.
template <class Objects>
Status TxChains<Objects>::split() {
  const std::uint64_t made = header_->buckets.count;
  const unsigned number = Buckets<PMEMoid>::segment_of(made);
  return objects_.transact([&]() -> Status {
    PMEMoid& segment = header_->buckets.segment[number];
    PMEMoid& parent = head(parent_of(made));
    if (!objects_.log(header_->buckets.count) || !log_chain(parent) || !objects_.log(segment))
      return Done{};
    const bool fresh = segment.off == 0;
    if (fresh)
      segment = objects_.tx_allocate(Buckets<PMEMoid>::bytes_of(number), segment_type, false);
    // Its first head is not logged: libpmemobj would flush the whole segment with it.
    if (segment.off == 0 || (!fresh && !objects_.log(head(made)))) return Done{};
    header_->buckets.count = made + 1;
    PMEMoid* stays = &parent;
    PMEMoid* goes = &head(made);
    for (PMEMoid at = parent; at.off != 0;) {
      auto* entry = Objects::template at<MapEntry>(at);
      PMEMoid*& end = bucket_of_key(entry->key) == made ? goes : stays;
      *end = at;
      end = &entry->next;
      at = entry->next;
    }
    *stays = OID_NULL;
    *goes = OID_NULL;
    if (fresh) objects_.persist(&head(made), sizeof head(made));
    return Done{};
  });
}

template <class Objects>
Status TxChains<Objects>::join() {
  const std::uint64_t last = header_->buckets.count - 1;
  return objects_.transact([&]() -> Status {
    PMEMoid* end = &head(parent_of(last));
    while (end->off != 0)
      end = &Objects::template at<MapEntry>(*end)->next;
    if (!objects_.log(*end) || !objects_.log(header_->buckets.count)) return Done{};
    *end = head(last);
    header_->buckets.count = last;
    return Done{};
  });
}

template <class Objects>
const char* TxChains<Objects>::check() const {
  const char* wrong = nullptr;
  std::uint64_t found = 0;
  for (std::uint64_t bucket = 0; bucket < header_->buckets.count; ++bucket)
    each_in(bucket, [&](const MapEntry& entry) {
      ++found;
      if (bucket_of_key(entry.key) != bucket) wrong = "an entry lies in another's bucket";
    });
  return wrong == nullptr && found != header_->entries ? "it counts more or fewer than it holds"
                                                       : wrong;
}

template class TxChains<PoolObjects>;
template class TxChains<DramObjects>;

} // namespace nearfar::structures
