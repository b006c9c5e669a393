// A persistent skip list: a sorted set of which level 0 alone is durable.
//
// Shape          level 0 is a chain in the pool. A quarter of its nodes have a tower in DRAM, with
//                a copy of the key, so that a search comes to the pool only for its last few steps.
//                Towers are rebuilt at open.
// Invariants     keys ascend strictly along level 0, and along each level of towers.
// Durability     insert: node, flush, fence, the link to it, flush, fence. Remove: the link past
//                the node, flush, fence; then its memory is free. Clear: one link, flush, fence.
//                So every call but bulk_load() is atomic, and durable when it returns.
// Memory         heap.hpp: rebuilt at open by walking level 0; nothing leaks.
// Thread safety  contains, insert, remove, size by any number of threads: readers share a lock, a
//                writer has it alone until what it did is durable. The rest want no writer beside
//                them; for_each may not call the list.
// Errors         no_space: nothing has changed. failed_check: the pool is damaged. os_error: msync.
// Source         Pugh 1990, with a probability of 1/4.
#pragma once

#include <array>
#include <bit>
#include <memory>
#include <shared_mutex>

#include "base/random.hpp"
#include "structures/sorted.hpp"

namespace nearfar::structures {

template <class Medium, Plain Key>
class SkipList {
public:
  /// Recovers the list that lies at `root`. Fails with failed_check where it is damaged.
  static Result<std::unique_ptr<SkipList>> open(Medium& medium, ChainRoot& root) {
    std::unique_ptr<SkipList> list(new SkipList(medium, root));
    if (Status found = list->recover(); !found) return found.error();
    return list;
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
    raise(*node, path);
    ++size_;
    return settled(chain_, true);
  }

  /// True if the key was there.
  Result<bool> remove(const Key& key) {
    const std::unique_lock guard(mutex_);
    Path path;
    std::uint64_t& where = find(key, &path);
    if (!holds(where, key)) return false;
    fell(chain_.at(where), path);
    chain_.unlink(where);
    --size_;
    return settled(chain_, true);
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
    forget_towers();
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
    forget_towers();
    Path path = first_path();
    for (Node<Key>* node = chain_.at(chain_.head()); node; node = chain_.at(node->next))
      raise(node, path);
    return Done{};
  }

  /// Calls visit(key) in ascending order.
  template <class Visit>
  void for_each(Visit visit) const {
    const std::shared_lock guard(mutex_);
    for (const Node<Key>* node = chain_.at(chain_.head()); node; node = chain_.at(node->next))
      visit(node->value);
  }

  /// Checks all invariants anew, from the pool alone, and that the towers stand on it. Fails with
  /// failed_check.
  Status verify() const {
    const std::shared_lock guard(mutex_);
    SkipList fresh(medium_, root_);
    if (Status found = fresh.recover(); !found) return found;
    bool found_all = fresh.size_ == size_;
    for (const Node<Key>* node = chain_.at(chain_.head()); node; node = chain_.at(node->next))
      found_all = found_all && chain_.at(find(node->value, nullptr)) == node;
    if (found_all) return Done{};
    return Error::make(Errc::failed_check, "the skip list counts %zu keys, holds %zu, %s", size_,
                       fresh.size_, "or does not find each of them");
  }

private:
  static constexpr unsigned levels = 16; ///< of towers: enough for 4^16 keys

  struct Tower {
    Key key;
    Node<Key>* node;
    Tower* next[1]; ///< one for each of its levels
  };
  /// The links by which a search went down, from the lowest level of towers up.
  using Path = std::array<Tower**, levels>;

  SkipList(Medium& medium, ChainRoot& root)
      : medium_(medium), root_(root), chain_(medium, root), heap_(dram_, tower_chunks_) {}

  static std::size_t tower_bytes(unsigned height) {
    return sizeof(Tower) + (height - 1) * sizeof(Tower*);
  }
  static bool holds_key(const Node<Key>* node, const Key& key) {
    return node != nullptr && !(key < node->value);
  }
  bool holds(std::uint64_t where, const Key& key) const { return holds_key(chain_.at(where), key); }

  Status recover() {
    Path path = first_path();
    return recover_sorted(chain_, [&](std::uint64_t*, Node<Key>* node) {
      ++size_;
      raise(node, path);
    });
  }

  Path first_path() {
    Path path;
    for (unsigned level = 0; level < levels; ++level)
      path[level] = &heads_[level];
    return path;
  }
  void forget_towers() {
    heads_.fill(nullptr);
    heap_.reset();
    height_ = 0;
  }

  /// The first link of level 0 that leads to no smaller key; and how it was found.
  std::uint64_t& find(const Key& key, Path* path) const {
    const Tower* left = nullptr;
    if (path != nullptr)
      for (unsigned level = height_; level < levels; ++level)
        (*path)[level] = &heads_[level];
    for (unsigned level = height_; level-- > 0;) {
      Tower* const* link = left == nullptr ? &heads_[level] : &left->next[level];
      while (*link != nullptr && (*link)->key < key) {
        left = *link;
        link = &left->next[level];
      }
      if (path != nullptr) (*path)[level] = const_cast<Tower**>(link);
    }
    std::uint64_t* where = left == nullptr ? &chain_.head() : &left->node->next;
    for (Node<Key>* node = chain_.at(*where); node != nullptr && node->value < key;
         node = chain_.at(*where))
      where = &node->next;
    return *where;
  }

  /// Perhaps gives a node a tower, behind the path, and moves the path behind it. Without memory
  /// for one the search goes a few steps more.
  void raise(Node<Key>* node, Path& path) {
    const unsigned height =
        std::min(levels, static_cast<unsigned>(std::countr_zero(random_.next() | 1ull << 63)) / 2);
    if (height == 0) return;
    Result<std::uint64_t> link = heap_.take(tower_bytes(height));
    if (!link) return;
    auto* tower = dram_.template at<Tower>(*link);
    tower->key = node->value;
    tower->node = node;
    for (unsigned level = 0; level < height; ++level) {
      tower->next[level] = *path[level];
      *path[level] = tower;
      path[level] = &tower->next[level];
    }
    height_ = std::max(height_, height);
  }

  /// Takes the tower of a node away, if it has one.
  void fell(const Node<Key>* node, const Path& path) {
    Tower* tower = *path[0];
    if (tower == nullptr || tower->node != node) return;
    unsigned height = 0;
    for (; height < levels && *path[height] == tower; ++height)
      *path[height] = tower->next[height];
    heap_.give_back(dram_.link_of(tower), tower_bytes(height));
  }

  Medium& medium_;
  ChainRoot& root_;
  Chain<Medium, Key> chain_;
  Dram dram_;
  ChunkTable tower_chunks_{};
  Heap<Dram> heap_; ///< of towers
  mutable std::array<Tower*, levels> heads_{};
  unsigned height_ = 0; ///< levels in use
  Random random_{1};
  mutable std::shared_mutex mutex_;
  std::size_t size_ = 0;
};

} // namespace nearfar::structures
