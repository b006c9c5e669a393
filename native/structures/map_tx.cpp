#include "structures/map_tx.hpp"

#include <cstddef>

namespace nearfar::structures {

namespace {

constexpr std::uint64_t header_type = 1004; // type numbers tell objects apart for pmempool info
constexpr std::uint64_t buckets_type = 1005;
constexpr std::uint64_t entry_type = 1006;

/// Runs body() -> Status in a transaction, nested if one is under way; an error undoes it.
template <class Body>
Status transact(PMEMobjpool* pool, const Body& body) {
  if (pmemobj_tx_begin(pool, nullptr, TX_PARAM_NONE) != 0) {
    const Error failed = pool_error("beginning a transaction");
    (void)pmemobj_tx_end();
    return failed;
  }
  Status done = body();
  if (done)
    pmemobj_tx_commit();
  else if (pmemobj_tx_stage() == TX_STAGE_WORK)
    pmemobj_tx_abort(ECANCELED);
  (void)pmemobj_tx_end();
  return done;
}

/// To be called before a field is overwritten.
template <class T>
bool snapshot(const T& field) {
  return pmemobj_tx_add_range_direct(&field, sizeof field) == 0;
}

} // namespace

struct MapTx::Header {
  std::uint32_t seed; ///< never used: it keeps the fields where PMDK's map has them
  ChainHash hash;
  std::uint64_t entries;
  PMEMoid buckets;
};

struct MapTx::Buckets {
  std::uint64_t count;

  PMEMoid* heads() { return reinterpret_cast<PMEMoid*>(this + 1); }
  static std::size_t bytes(std::uint64_t count) {
    return sizeof(Buckets) + count * sizeof(PMEMoid);
  }
};

struct MapTx::Entry {
  std::uint64_t key;
  PMEMoid value;
  PMEMoid next;
};

Result<MapTx> MapTx::create(PMEMobjpool* pool, PMEMoid* where) {
  Status made = transact(pool, [&]() -> Status {
    if (!snapshot(*where)) return pool_error("logging the map's handle");
    const PMEMoid map = pmemobj_tx_zalloc(sizeof(Header), header_type);
    if (map.off == 0) return pool_error("allocating the map");
    auto* header = direct<Header>(map);
    header->hash = {};
    header->buckets = pmemobj_tx_zalloc(Buckets::bytes(initial_buckets), buckets_type);
    if (header->buckets.off == 0) return pool_error("allocating buckets");
    direct<Buckets>(header->buckets)->count = initial_buckets;
    *where = map;
    return Done{};
  });
  if (!made) return made.error();
  return MapTx(pool, direct<Header>(*where));
}

Result<MapTx> MapTx::open(PMEMobjpool* pool, PMEMoid map) {
  return MapTx(pool, direct<Header>(map));
}

std::uint64_t MapTx::size() const { return header_->entries; }

std::uint64_t MapTx::buckets() const { return direct<Buckets>(header_->buckets)->count; }

PMEMoid MapTx::get(std::uint64_t key) const {
  auto* all = direct<Buckets>(header_->buckets);
  for (PMEMoid at = all->heads()[header_->hash(key, all->count)]; at.off != 0;) {
    const auto* entry = direct<Entry>(at);
    if (entry->key == key) return entry->value;
    at = entry->next;
  }
  return OID_NULL;
}

Result<bool> MapTx::insert(std::uint64_t key, PMEMoid value) {
  auto* all = direct<Buckets>(header_->buckets);
  PMEMoid& head = all->heads()[header_->hash(key, all->count)];
  std::uint64_t chain = 0;
  for (PMEMoid at = head; at.off != 0; ++chain) {
    const auto* entry = direct<Entry>(at);
    if (entry->key == key) return false;
    at = entry->next;
  }
  Status inserted = transact(pool_, [&]() -> Status {
    if (!snapshot(head) || !snapshot(header_->entries)) return pool_error("logging a bucket");
    const PMEMoid made = pmemobj_tx_alloc(sizeof(Entry), entry_type);
    if (made.off == 0) return pool_error("allocating an entry");
    *direct<Entry>(made) = {key, value, head};
    head = made;
    ++header_->entries;
    return Done{};
  });
  if (!inserted) return inserted.error();
  if (chain_overflows(chain + 1, header_->entries, all->count))
    if (Status grown = rebuild(all->count * 2); !grown && grown.error().code != Errc::no_space)
      return grown.error(); // without room for more buckets the map is slower, and whole
  return true;
}

Result<PMEMoid> MapTx::remove(std::uint64_t key) {
  auto* all = direct<Buckets>(header_->buckets);
  PMEMoid* link = &all->heads()[header_->hash(key, all->count)];
  while (link->off != 0 && direct<Entry>(*link)->key != key)
    link = &direct<Entry>(*link)->next;
  if (link->off == 0) return OID_NULL;
  const PMEMoid gone = *link;
  const PMEMoid value = direct<Entry>(gone)->value;
  Status removed = transact(pool_, [&]() -> Status {
    if (!snapshot(*link) || !snapshot(header_->entries)) return pool_error("logging a bucket");
    *link = direct<Entry>(gone)->next;
    --header_->entries;
    if (pmemobj_tx_free(gone) != 0) return pool_error("freeing an entry");
    return Done{};
  });
  if (!removed) return removed.error();
  if (header_->entries < all->count && all->count > 1)
    if (Status shrunk = rebuild(all->count / 2); !shrunk && shrunk.error().code != Errc::no_space)
      return shrunk.error();
  return value;
}

Status MapTx::rebuild(std::uint64_t count) {
  return transact(pool_, [&] { return move_entries(count); });
}

/// Into `count` new buckets, within a transaction.
Status MapTx::move_entries(std::uint64_t count) {
  const PMEMoid old = header_->buckets;
  auto* from = direct<Buckets>(old);
  if (!snapshot(header_->buckets)) return pool_error("logging the buckets' handle");
  const PMEMoid made = pmemobj_tx_zalloc(Buckets::bytes(count), buckets_type);
  if (made.off == 0) return pool_error("allocating buckets");
  auto* to = direct<Buckets>(made);
  to->count = count;
  if (pmemobj_tx_add_range(old, 0, Buckets::bytes(from->count)) != 0)
    return pool_error("logging the buckets");
  for (std::uint64_t i = 0; i < from->count; ++i)
    for (PMEMoid& head = from->heads()[i]; head.off != 0;) {
      const PMEMoid moved = head;
      auto* entry = direct<Entry>(moved);
      head = entry->next;
      if (!snapshot(entry->next)) return pool_error("logging an entry");
      PMEMoid& new_head = to->heads()[header_->hash(entry->key, count)];
      entry->next = new_head;
      new_head = moved;
    }
  header_->buckets = made;
  if (pmemobj_tx_free(old) != 0) return pool_error("freeing the old buckets");
  return Done{};
}

} // namespace nearfar::structures
