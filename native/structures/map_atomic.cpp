#include "structures/map_atomic.hpp"

#include <cstddef>

namespace nearfar::structures {

namespace {

constexpr std::uint64_t header_type = 1000; // type numbers tell objects apart for pmempool info
constexpr std::uint64_t buckets_type = 1001;
constexpr std::uint64_t entry_type = 1002;

/// As libpmemobj's list operations want them.
struct ListHead {
  PMEMoid first;
  PMEMmutex lock;
};
struct ListLinks {
  PMEMoid next;
  PMEMoid previous;
};
static_assert(sizeof(ListHead) == 80);

} // namespace

struct MapAtomic::Header {
  std::uint32_t seed; ///< never used: it keeps the fields where PMDK's map has them
  ChainHash hash;
  std::uint64_t entries;
  std::uint32_t entries_dirty;
  PMEMoid buckets;
  PMEMoid growing;
};

struct MapAtomic::Buckets {
  std::uint64_t count;

  ListHead* heads() { return reinterpret_cast<ListHead*>(this + 1); }
  static std::size_t bytes(std::uint64_t count) {
    return sizeof(Buckets) + count * sizeof(ListHead);
  }
};

struct MapAtomic::Entry {
  std::uint64_t key;
  PMEMoid value;
  ListLinks links;
};

struct MapAtomic::Contents {
  std::uint64_t key;
  PMEMoid value;
};

template <class T>
void MapAtomic::set(T& field, T value) {
  field = value;
  pmemobj_persist(pool_, &field, sizeof field);
}

/// Its offset tells whether there is an object, so it comes last; they may lie in two lines.
void MapAtomic::set_handle(PMEMoid& field, PMEMoid value) {
  set(field.pool_uuid_lo, value.pool_uuid_lo);
  set(field.off, value.off);
}

int MapAtomic::fill_buckets(PMEMobjpool* pool, void* object, void* count) {
  auto* made = static_cast<Buckets*>(object);
  made->count = *static_cast<const std::uint64_t*>(count);
  pmemobj_memset_persist(pool, made->heads(), 0, made->count * sizeof(ListHead));
  pmemobj_persist(pool, &made->count, sizeof made->count);
  return 0;
}

int MapAtomic::fill_entry(PMEMobjpool* pool, void* object, void* contents) {
  auto* made = static_cast<Entry*>(object);
  const auto* wanted = static_cast<const Contents*>(contents);
  *made = {wanted->key, wanted->value, {}};
  pmemobj_persist(pool, made, sizeof *made);
  return 0;
}

Result<MapAtomic> MapAtomic::create(PMEMobjpool* pool, PMEMoid* where) {
  if (pmemobj_zalloc(pool, where, sizeof(Header), header_type) != 0)
    return pool_error("allocating the map");
  MapAtomic map(pool, direct<Header>(*where));
  if (Status started = map.start(); !started) return started.error();
  return map;
}

Status MapAtomic::start() {
  header_->hash = {};
  pmemobj_persist(pool_, header_, sizeof *header_);
  std::uint64_t count = initial_buckets;
  if (pmemobj_alloc(pool_, &header_->buckets, Buckets::bytes(count), buckets_type, fill_buckets,
                    &count) != 0)
    return pool_error("allocating buckets");
  return Done{};
}

Result<MapAtomic> MapAtomic::open(PMEMobjpool* pool, PMEMoid where) {
  MapAtomic map(pool, direct<Header>(where));
  if (Status recovered = map.recover(); !recovered) return recovered.error();
  return map;
}

Status MapAtomic::recover() {
  if (header_->growing.off != 0) {
    if (header_->buckets.off == 0) set_handle(header_->buckets, header_->growing);
    if (header_->buckets.off == header_->growing.off) {
      set(header_->growing.off, std::uint64_t{0});
    } else if (Status finished = finish_rebuild(); !finished) {
      return finished;
    }
  }
  if (header_->buckets.off == 0)
    if (Status started = start(); !started) return started;
  if (header_->entries_dirty != 0) {
    set(header_->entries, count_entries());
    set(header_->entries_dirty, std::uint32_t{0});
  }
  return Done{};
}

std::uint64_t MapAtomic::count_entries() const {
  auto* all = direct<Buckets>(header_->buckets);
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < all->count; ++i) {
    const PMEMoid first = all->heads()[i].first;
    for (PMEMoid at = first; at.off != 0; ++found) {
      at = direct<Entry>(at)->links.next;
      if (at.off == first.off) at.off = 0;
    }
  }
  return found;
}

std::uint64_t MapAtomic::size() const { return header_->entries; }

std::uint64_t MapAtomic::buckets() const { return direct<Buckets>(header_->buckets)->count; }

/// The entry of a key, or a null handle; `chain` becomes the number of entries passed by.
PMEMoid MapAtomic::find(std::uint64_t key, std::uint64_t& chain) const {
  auto* all = direct<Buckets>(header_->buckets);
  const PMEMoid first = all->heads()[header_->hash(key, all->count)].first;
  chain = 0;
  for (PMEMoid at = first; at.off != 0; ++chain) {
    const auto* entry = direct<Entry>(at);
    if (entry->key == key) return at;
    at = entry->links.next;
    if (at.off == first.off) at.off = 0;
  }
  return OID_NULL;
}

PMEMoid MapAtomic::get(std::uint64_t key) const {
  std::uint64_t chain = 0;
  const PMEMoid found = find(key, chain);
  return found.off == 0 ? OID_NULL : direct<Entry>(found)->value;
}

Result<bool> MapAtomic::insert(std::uint64_t key, PMEMoid value) {
  std::uint64_t chain = 0;
  if (find(key, chain).off != 0) return false;
  set(header_->entries_dirty, std::uint32_t{1});
  auto* all = direct<Buckets>(header_->buckets);
  ListHead* head = &all->heads()[header_->hash(key, all->count)];
  Contents contents{key, value};
  const PMEMoid made = pmemobj_list_insert_new(pool_, offsetof(Entry, links), head, head->first, 1,
                                               sizeof(Entry), entry_type, fill_entry, &contents);
  if (made.off == 0) {
    const Error failed = pool_error("inserting an entry");
    set(header_->entries_dirty, std::uint32_t{0});
    return failed;
  }
  set(header_->entries, header_->entries + 1);
  set(header_->entries_dirty, std::uint32_t{0});
  if (chain_overflows(chain + 1, header_->entries, all->count))
    if (Status grown = rebuild(all->count * 2); !grown && grown.error().code != Errc::no_space)
      return grown.error(); // without room for more buckets the map is slower, and whole
  return true;
}

Result<PMEMoid> MapAtomic::remove(std::uint64_t key) {
  std::uint64_t chain = 0;
  const PMEMoid found = find(key, chain);
  if (found.off == 0) return OID_NULL;
  const PMEMoid value = direct<Entry>(found)->value;
  auto* all = direct<Buckets>(header_->buckets);
  ListHead* head = &all->heads()[header_->hash(key, all->count)];
  set(header_->entries_dirty, std::uint32_t{1});
  if (pmemobj_list_remove(pool_, offsetof(Entry, links), head, found, 1) != 0)
    return pool_error("removing an entry");
  set(header_->entries, header_->entries - 1);
  set(header_->entries_dirty, std::uint32_t{0});
  if (header_->entries < all->count && all->count > 1)
    if (Status shrunk = rebuild(all->count / 2); !shrunk && shrunk.error().code != Errc::no_space)
      return shrunk.error();
  return value;
}

Status MapAtomic::rebuild(std::uint64_t count) {
  if (pmemobj_alloc(pool_, &header_->growing, Buckets::bytes(count), buckets_type, fill_buckets,
                    &count) != 0)
    return pool_error("allocating buckets");
  return finish_rebuild();
}

Status MapAtomic::finish_rebuild() {
  auto* from = direct<Buckets>(header_->buckets);
  auto* to = direct<Buckets>(header_->growing);
  for (std::uint64_t i = 0; i < from->count; ++i) {
    ListHead* old_head = &from->heads()[i];
    while (old_head->first.off != 0) {
      const PMEMoid entry = old_head->first;
      ListHead* head = &to->heads()[header_->hash(direct<Entry>(entry)->key, to->count)];
      constexpr std::size_t links = offsetof(Entry, links);
      if (pmemobj_list_move(pool_, links, old_head, links, head, head->first, 1, entry) != 0)
        return pool_error("moving an entry");
    }
  }
  pmemobj_free(&header_->buckets);
  set_handle(header_->buckets, header_->growing);
  set(header_->growing.off, std::uint64_t{0});
  return Done{};
}

} // namespace nearfar::structures
