// A hash map of doubly linked buckets, changed by libpmemobj's atomic list operations, after PMDK's
// hashmap_atomic.
//
// Invariants    every entry is in the circular list of its bucket (linear_hashing.hpp). Exception:
//               a crash during a split or join leaves entries of the last bucket in its parent, or
//               the reverse. `entries` is their number unless `entries_dirty`.
// Durability    insertion: entries_dirty = 1; the entry's contents, then allocation and links in
//               one redo log of libpmemobj; entries; entries_dirty = 0. Removal likewise. Split:
//               [a segment,] the new head, the number of buckets, then entries one by one, each
//               moved by one redo log. Join: entries likewise, then the number of buckets. open()
//               counts again if necessary, and completes a split or undoes half a join.
// Growth        one bucket at a time. PMDK's map moves all entries at once.
// Thread safety, errors  structures/pmdk_map.hpp.
#pragma once

#include "structures/linear_hashing.hpp"
#include "structures/pmdk_map.hpp"

namespace nearfar::structures {

template <class ObjectPolicy>
class AtomicChains {
public:
  using Objects = ObjectPolicy; ///< PoolObjects or DramObjects

  explicit AtomicChains(Objects& objects) : objects_(objects) {}
  Status create(PMEMoid& root);
  Status open(PMEMoid root);

  Result<bool> insert(std::uint64_t key, PMEMoid value);
  std::optional<PMEMoid> get(std::uint64_t key) const;
  Result<std::optional<PMEMoid>> remove(std::uint64_t key);
  std::uint64_t size() const { return header_->entries; }
  std::uint64_t capacity() const { return header_->buckets.count; }

  template <class Visit>
  void for_each(Visit visit) const {
    for (std::uint64_t bucket = 0; bucket < header_->buckets.count; ++bucket)
      each_in(bucket, [&](PMEMoid, const MapEntry& entry) { visit(entry.key, entry.value); });
  }
  const char* check() const;

private:
  struct MapEntry {
    std::uint64_t key;
    PMEMoid value;
    ListLinks links;
  };
  struct Header {
    ChainHash hash;
    std::uint64_t entries;
    std::uint64_t entries_dirty;
    Buckets<ListHead> buckets;
  };
  struct Contents;

  static int fill_entry(PMEMobjpool* pool, void* object, void* contents);
  void set(std::uint64_t& word, std::uint64_t value);
  Status start();
  Status split();
  Status join();
  Status fill_from_parent(std::uint64_t bucket);
  bool move(std::uint64_t from, std::uint64_t to, PMEMoid entry);
  std::uint64_t bucket_of_key(std::uint64_t key) const {
    return bucket_of(header_->hash(key), header_->buckets.count);
  }
  ListHead& head(std::uint64_t bucket) const {
    return header_->buckets.template head<Objects>(bucket);
  }
  PMEMoid find(std::uint64_t bucket, std::uint64_t key) const;

  /// Calls visit(handle, entry) for each entry of a bucket; it may move that entry to another
  /// bucket.
  template <class Visit>
  void each_in(std::uint64_t bucket, Visit visit) const {
    const PMEMoid first = head(bucket).first;
    if (first.off == 0) return;
    const std::uint64_t last = Objects::template at<MapEntry>(first)->links.previous.off;
    for (PMEMoid next = first;;) {
      const PMEMoid at = next;
      const auto* entry = Objects::template at<MapEntry>(at);
      next = entry->links.next;
      visit(at, *entry);
      if (at.off == last) return;
    }
  }

  Objects& objects_;
  Header* header_ = nullptr;
};

template <class Objects>
using MapAtomic = PmdkMap<AtomicChains<Objects>>;

} // namespace nearfar::structures
