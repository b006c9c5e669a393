// A persistent sorted list of keys: a set that is walked from its head.
//
// Invariants     keys ascend strictly along the links.
// Durability     insert: node, flush, fence, the link to it, flush, fence. Remove: the link past
//                the node, flush, fence; then its memory is free. Clear: one link, flush, fence.
//                So every call but bulk_load() is atomic, and durable when it returns.
// Memory         heap.hpp: the free state is rebuilt at open by walking the list, so that nothing
//                leaks and allocating costs no fence.
// Thread safety  contains, insert, remove, size by any number of threads: readers share a lock, a
//                writer has it alone until what it did is durable. The rest want no writer beside
//                them; for_each may not call the list.
// Errors         no_space: nothing has changed. failed_check: the pool is damaged. os_error: msync.
#pragma once

#include <memory>
#include <shared_mutex>

#include "structures/sorted.hpp"

namespace nearfar::structures {

template <class Medium, Plain Key>
class List {
public:
  /// Recovers the list that lies at `root`. Fails with failed_check where it is damaged.
  static Result<std::unique_ptr<List>> open(Medium& medium, ChainRoot& root) {
    std::unique_ptr<List> list(new List(medium, root));
    if (Status found = list->recover(); !found) return found.error();
    return list;
  }

  /// False if the key is there already.
  Result<bool> insert(const Key& key) {
    const std::unique_lock guard(mutex_);
    std::uint64_t& where = place_of(key);
    if (holds(where, key)) return false;
    Result<Node<Key>*> node = chain_.make(key, where);
    if (!node) return node.error();
    chain_.fence();
    chain_.link(where, *node);
    ++size_;
    return settled(chain_, true);
  }

  /// True if the key was there.
  Result<bool> remove(const Key& key) {
    const std::unique_lock guard(mutex_);
    std::uint64_t& where = place_of(key);
    if (!holds(where, key)) return false;
    chain_.unlink(where);
    --size_;
    return settled(chain_, true);
  }

  bool contains(const Key& key) const {
    const std::shared_lock guard(mutex_);
    return holds(place_of(key), key);
  }
  std::size_t size() const {
    const std::shared_lock guard(mutex_);
    return size_;
  }

  Status clear() {
    const std::unique_lock guard(mutex_);
    chain_.clear();
    size_ = 0;
    if (chain_.failed()) return sync_failed();
    return Done{};
  }

  /// Adds many keys with two fences in all. A crash meanwhile may leave any part of them.
  Status bulk_load(std::vector<Key> keys) {
    const std::unique_lock guard(mutex_);
    Result<std::size_t> added = load_sorted(chain_, std::move(keys));
    if (!added) return added.error();
    size_ += *added;
    return Done{};
  }

  /// Calls visit(key) in ascending order.
  template <class Visit>
  void for_each(Visit visit) const {
    const std::shared_lock guard(mutex_);
    for (const Node<Key>* node = chain_.at(chain_.head()); node; node = chain_.at(node->next))
      visit(node->value);
  }

  /// Checks all invariants anew, from the pool alone. Fails with failed_check.
  Status verify() const {
    const std::shared_lock guard(mutex_);
    List fresh(medium_, root_);
    if (Status found = fresh.recover(); !found) return found;
    if (fresh.size_ == size_) return Done{};
    return Error::make(Errc::failed_check, "the list counts %zu keys and holds %zu", size_,
                       fresh.size_);
  }

private:
  List(Medium& medium, ChainRoot& root) : medium_(medium), root_(root), chain_(medium, root) {}

  Status recover() {
    return recover_sorted(chain_, [&](std::uint64_t*, Node<Key>*) { ++size_; });
  }
  /// The first link that leads to no smaller key.
  std::uint64_t& place_of(const Key& key) const {
    std::uint64_t* where = &chain_.head();
    for (Node<Key>* node = chain_.at(*where); node != nullptr && node->value < key;
         node = chain_.at(*where))
      where = &node->next;
    return *where;
  }
  bool holds(std::uint64_t where, const Key& key) const {
    return where != 0 && !(key < chain_.at(where)->value);
  }

  Medium& medium_;
  ChainRoot& root_;
  Chain<Medium, Key> chain_;
  mutable std::shared_mutex mutex_;
  std::size_t size_ = 0;
};

} // namespace nearfar::structures
