// A hash map of singly linked buckets, changed by libpmemobj's undo transactions, after PMDK's
// hashmap_tx.
//
// Invariants    every entry is in the chain of its bucket (linear_hashing.hpp), once; `entries` is
//               their number.
// Durability    each operation is one transaction: data is logged before it is overwritten, and
//               allocations and frees take effect at its commit. A split or join after it is
//               another one. Inside a transaction of the caller both become durable with that one,
//               or are undone with it. open() has nothing to do: libpmemobj has undone unfinished
//               ones.
// Growth        one bucket at a time. PMDK's map moves all entries in one transaction.
// Thread safety, errors  structures/pmdk_map.hpp.
#pragma once

#include "structures/linear_hashing.hpp"
#include "structures/pmdk_map.hpp"

namespace nearfar::structures {

template <class ObjectPolicy>
class TxChains {
public:
  using Objects = ObjectPolicy; ///< PoolObjects or DramObjects

  explicit TxChains(Objects& objects) : objects_(objects) {}
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
      each_in(bucket, [&](const MapEntry& entry) { visit(entry.key, entry.value); });
  }
  const char* check() const;

private:
  struct MapEntry {
    std::uint64_t key;
    PMEMoid value;
    PMEMoid next;
  };
  struct Header {
    ChainHash hash;
    std::uint64_t entries;
    Buckets<PMEMoid> buckets;
  };

  Status split();
  Status join();
  bool log_chain(PMEMoid& head) const;
  std::uint64_t bucket_of_key(std::uint64_t key) const {
    return bucket_of(header_->hash(key), header_->buckets.count);
  }
  PMEMoid& head(std::uint64_t bucket) const {
    return header_->buckets.template head<Objects>(bucket);
  }
  /// The link to the key's entry, or the last one of its chain.
  PMEMoid* find(std::uint64_t key) const;

  template <class Visit>
  void each_in(std::uint64_t bucket, Visit visit) const {
    for (PMEMoid at = head(bucket); at.off != 0;) {
      const auto* entry = Objects::template at<MapEntry>(at);
      at = entry->next;
      visit(*entry);
    }
  }

  Objects& objects_;
  Header* header_ = nullptr;
};

template <class Objects>
using MapTx = PmdkMap<TxChains<Objects>>;

} // namespace nearfar::structures
