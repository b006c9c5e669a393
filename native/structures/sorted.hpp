// A persistent sorted set: a chain of ascending keys, and an index in DRAM that shortens searches.
// The common part of list.hpp and skip_list.hpp, which differ in their index.
//
// Invariants     keys ascend strictly along the chain.
// Durability     insert: node, flush, fence, the link to it, flush, fence. Remove: the link past
//                the node, flush, fence; then its memory is free. Clear: one link, flush, fence.
//                Every call but bulk_load() is atomic, and durable when it returns.
// Memory         node_heap.hpp: the free state is rebuilt at open by walking the chain, so that
//                nothing leaks and allocating costs no fence.
// Thread safety  contains, insert, remove, size by any number of threads: readers share a lock, a
//                writer holds it exclusively until its changes are durable. The others require that
//                no thread writes; for_each may not call the set.
// Errors         no_space: without an effect. failed_check: the pool is damaged. os_error: msync.
//
// An Index<PersistencePolicy, Key> over a chain has
//   name, may_mislead     name of the set; whether a damaged index can mislead a search
//   Path                  the links by which a search descended to the chain
//   Path first_path()     the path before all keys
//   before(key, path)     a link of the chain at or before the first key that is not smaller;
//                         stores the path unless that is null
//   add(node, path)       adds a new node behind the path, and moves the path behind the node
//   remove(node, path)    removes the node behind the path
//   forget()              removes all nodes
#pragma once

#include <algorithm>
#include <memory>
#include <shared_mutex>
#include <vector>

#include "structures/chain.hpp"

namespace nearfar::structures {

template <class PersistencePolicy, persist::storable Key, template <class, class> class Index>
class SortedSet {
public:
  /// Recovers the set at `root`. Fails with failed_check if it is damaged.
  static Result<std::unique_ptr<SortedSet>> open(PersistencePolicy& medium, ChainRoot& root) {
    std::unique_ptr<SortedSet> set(new SortedSet(medium, root));
    if (Status found = set->recover(); !found) return found.error();
    return set;
  }

  /// False if the key is there already.
  Result<bool> insert(const Key& key) {
    const std::unique_lock guard(mutex_);
    Path path;
    std::uint64_t& where = find(key, &path);
    if (holds(where, key)) return false;
    Result<Node<Key>*> node = chain_.make(key, where);
    if (!node) return node.error();
    chain_.fence();
    chain_.link(where, *node);
    index_.add(*node, path);
    ++size_;
    return settled(true);
  }

  /// True if the key was there.
  Result<bool> remove(const Key& key) {
    const std::unique_lock guard(mutex_);
    Path path;
    std::uint64_t& where = find(key, &path);
    if (!holds(where, key)) return false;
    index_.remove(chain_.at(where), path);
    chain_.unlink(where);
    --size_;
    return settled(true);
  }

  bool contains(const Key& key) const {
    const std::shared_lock guard(mutex_);
    return holds(find(key, nullptr), key);
  }
  std::size_t size() const {
    const std::shared_lock guard(mutex_);
    return size_;
  }

  Status clear() {
    const std::unique_lock guard(mutex_);
    chain_.clear();
    index_.forget();
    size_ = 0;
    if (chain_.failed()) return sync_failed();
    return Done{};
  }

  /// Adds many keys with two fences in total. A crash before it returns may leave any part of them.
  Status bulk_load(std::vector<Key> keys);

  /// Calls visit(key) in ascending order.
  template <class Visit>
  void for_each(Visit visit) const {
    const std::shared_lock guard(mutex_);
    for (const Node<Key>* node = chain_.at(chain_.head()); node; node = chain_.at(node->next))
      visit(node->value);
  }

  /// Checks all invariants again, only from the pool, and that a search finds each key. Fails with
  /// failed_check.
  Status verify() const;

private:
  using Indexed = Index<PersistencePolicy, Key>;
  using Path = typename Indexed::Path;
  using Nodes = std::vector<Node<Key>*>;
  /// Links of the chain, each with the first of the new nodes that it will link.
  using Runs = std::vector<std::pair<std::uint64_t*, const Node<Key>*>>;

  SortedSet(PersistencePolicy& medium, ChainRoot& root)
      : policy_(medium), root_(root), chain_(medium, root), index_(chain_) {}

  Status recover();
  Status make_runs(const std::vector<Key>& keys, Nodes& made, Runs& runs);

  /// The first link at or behind `where` to a key that is not smaller.
  std::uint64_t* walk(std::uint64_t* where, const Key& key) const {
    for (Node<Key>* node = chain_.at(*where); node != nullptr && node->value < key;
         node = chain_.at(*where))
      where = &node->next;
    return where;
  }
  /// The first link to a key that is not smaller; `path`: how it was found.
  std::uint64_t& find(const Key& key, Path* path) const {
    return *walk(index_.before(key, path), key);
  }
  bool holds(std::uint64_t where, const Key& key) const {
    return where != 0 && !(key < chain_.at(where)->value);
  }
  Result<bool> settled(bool result) const {
    if (chain_.failed()) return sync_failed();
    return result;
  }

  PersistencePolicy& policy_;
  ChainRoot& root_;
  Chain<PersistencePolicy, Key> chain_;
  Indexed index_;
  mutable std::shared_mutex mutex_;
  std::size_t size_ = 0;
};

template <class PersistencePolicy, persist::storable Key, template <class, class> class Index>
Status SortedSet<PersistencePolicy, Key, Index>::recover() {
  Path path = index_.first_path();
  const Node<Key>* before = nullptr;
  return chain_.recover([&](std::uint64_t*, Node<Key>* node) {
    if (before != nullptr && !(before->value < node->value)) return false;
    before = node;
    ++size_;
    index_.add(node, path);
    return true;
  });
}

/// Makes nodes for the keys, which ascend, that are not there yet; links none of them. no_space:
/// those made so far are in `made`.
template <class PersistencePolicy, persist::storable Key, template <class, class> class Index>
Status SortedSet<PersistencePolicy, Key, Index>::make_runs(const std::vector<Key>& keys,
                                                           Nodes& made, Runs& runs) {
  std::uint64_t* where = &chain_.head(); // of the chain, which has none of the new nodes yet
  Node<Key>* last = nullptr;             // the last new node that is to be linked there
  for (const Key& key : keys) {
    if (last != nullptr && !(last->value < key)) continue;
    std::uint64_t* const found = walk(where, key);
    if (found != where) last = nullptr;
    where = found;
    if (holds(*where, key)) continue;
    Result<Node<Key>*> node = chain_.make(key, *where);
    if (!node) return node.error();
    if (last != nullptr)
      chain_.set_next(last, chain_.link_of(*node));
    else
      runs.emplace_back(where, *node);
    made.push_back(last = *node);
  }
  return Done{};
}

template <class PersistencePolicy, persist::storable Key, template <class, class> class Index>
Status SortedSet<PersistencePolicy, Key, Index>::bulk_load(std::vector<Key> keys) {
  const std::unique_lock guard(mutex_);
  std::sort(keys.begin(), keys.end());
  Nodes made;
  Runs runs;
  if (Status all = make_runs(keys, made, runs); !all) {
    chain_.drop(made);
    return all;
  }
  chain_.fence();
  chain_.link_runs(runs);
  size_ += made.size();
  index_.forget();
  Path path = index_.first_path();
  for (Node<Key>* node = chain_.at(chain_.head()); node; node = chain_.at(node->next))
    index_.add(node, path);
  if (chain_.failed()) return sync_failed();
  return Done{};
}

template <class PersistencePolicy, persist::storable Key, template <class, class> class Index>
Status SortedSet<PersistencePolicy, Key, Index>::verify() const {
  const std::shared_lock guard(mutex_);
  SortedSet fresh(policy_, root_);
  if (Status found = fresh.recover(); !found) return found;
  bool finds_all = fresh.size_ == size_;
  if constexpr (Indexed::may_mislead)
    for (const Node<Key>* node = chain_.at(chain_.head()); node; node = chain_.at(node->next))
      finds_all = finds_all && chain_.at(find(node->value, nullptr)) == node;
  if (finds_all) return Done{};
  return Error::make(Errc::failed_check, "the %s counts %zu keys, holds %zu, %s", Indexed::name,
                     size_, fresh.size_, "or does not find each of them");
}

} // namespace nearfar::structures
