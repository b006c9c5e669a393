// A sorted list and a skip list of keys with correct use of only libpmemobj's transactions: every
// word is logged before it changes, nodes are allocated and freed in the transaction.
//
// Purpose        the cost of the persistent sets of the WSCAD 2022 paper with all of their logging;
//                the subject `pmdk` of list and skip_list, as map_tx is of hash.
// Shape          a node has as many links as its height; a list is a skip list of height 1. A node
//                has one level more with a probability of 1/4, drawn from its key.
// Durability     insert: node, links to it and the size in one transaction; remove likewise.
// Thread safety  none.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <libpmemobj.h>
#include <optional>

#include "structures/hash.hpp"
#include "structures/objects.hpp"

namespace nearfar::bench {

template <unsigned levels>
class PmdkSorted {
public:
  struct Node {
    std::uint64_t key;
    std::uint64_t height;
    PMEMoid next[levels]; ///< the first `height` of them are there
  };
  /// In the pool's root, zeroed: an empty set.
  struct Root {
    std::uint64_t size;
    std::uint64_t unused;
    PMEMoid head[levels];
  };

  PmdkSorted(PMEMobjpool* pool, Root* root) : pool_(pool), root_(root) {}

  bool contains(std::uint64_t key) const { return holds(*find(key)[0], key); }
  std::uint64_t size() const { return root_->size; }

  Result<bool> insert(std::uint64_t key) {
    const Path path = find(key);
    if (holds(*path[0], key)) return false;
    const unsigned height = height_of(key);
    return transact([&] {
      const PMEMoid made = pmemobj_tx_alloc(bytes(height), node_type);
      if (made.off == 0) return false;
      auto* node = structures::direct<Node>(made);
      node->key = key;
      node->height = height;
      for (unsigned level = 0; level < height; ++level) {
        if (!log(path[level], sizeof(PMEMoid))) return false;
        node->next[level] = *path[level];
        *path[level] = made;
      }
      return resize(1);
    });
  }

  Result<bool> remove(std::uint64_t key) {
    const Path path = find(key);
    if (!holds(*path[0], key)) return false;
    return transact([&] {
      const PMEMoid gone = *path[0];
      const auto* node = structures::direct<Node>(gone);
      for (unsigned level = 0; level < node->height; ++level) {
        if (!log(path[level], sizeof(PMEMoid))) return false;
        *path[level] = node->next[level];
      }
      return pmemobj_tx_free(gone) == 0 && resize(-1);
    });
  }

private:
  static constexpr std::uint64_t node_type = 1;
  using Path = std::array<PMEMoid*, levels>;

  static std::size_t bytes(unsigned height) {
    return sizeof(Node) - (levels - height) * sizeof(PMEMoid);
  }
  static unsigned height_of(std::uint64_t key) {
    const auto zeros = static_cast<unsigned>(std::countr_zero(structures::mix(key)));
    return 1 + std::min(zeros / 2, levels - 1);
  }
  static bool holds(PMEMoid link, std::uint64_t key) {
    return link.off != 0 && structures::direct<Node>(link)->key == key;
  }
  /// On each level the first link to a key that is not smaller.
  Path find(std::uint64_t key) const {
    Path path;
    PMEMoid* links = root_->head;
    for (unsigned level = levels; level-- > 0;) {
      while (links[level].off != 0) {
        auto* node = structures::direct<Node>(links[level]);
        if (node->key >= key) break;
        links = node->next;
      }
      path[level] = links + level;
    }
    return path;
  }
  static bool log(void* at, std::size_t size) { return pmemobj_tx_add_range_direct(at, size) == 0; }
  bool resize(int by) {
    if (!log(&root_->size, sizeof root_->size)) return false;
    root_->size += static_cast<std::uint64_t>(static_cast<std::int64_t>(by));
    return true;
  }
  /// Returns the result of body(); its changes are undone if it is false.
  template <class Body>
  Result<bool> transact(const Body& body) {
    if (pmemobj_tx_begin(pool_, nullptr, TX_PARAM_NONE) != 0)
      return structures::pool_error("beginning a transaction");
    const bool done = pmemobj_tx_stage() == TX_STAGE_WORK && body();
    std::optional<Error> failed;
    if (!done) failed = structures::pool_error("changing a set");
    if (pmemobj_tx_stage() == TX_STAGE_WORK)
      done ? pmemobj_tx_commit() : pmemobj_tx_abort(ECANCELED);
    if (pmemobj_tx_end() != 0 && !failed) failed = structures::pool_error("changing a set");
    if (failed) return *failed;
    return true;
  }

  PMEMobjpool* pool_;
  Root* root_;
};

} // namespace nearfar::bench
