// A persistent skip list: a sorted set of which only level 0 is durable.
//
// Shape          level 0 is a chain in the pool. A quarter of its nodes have a tower in DRAM, with
//                a copy of the key, so that a search reads the pool only for its last few steps.
//                Towers are rebuilt at open.
// Invariants     keys ascend strictly along each level of towers; those of the chain, its order of
//                durability, thread safety and errors: sorted.hpp.
// Source         Pugh 1990, with a probability of 1/4.
#pragma once

#include <array>
#include <bit>

#include "base/random.hpp"
#include "structures/sorted.hpp"

namespace nearfar::structures {

template <class PersistencePolicy, class Key>
class Towers {
  struct Tower {
    Key key;
    Node<Key>* node;
    Tower* next[1]; ///< one for each of its levels
  };
  static constexpr unsigned levels = 16; ///< of towers: enough for 4^16 keys

public:
  static constexpr const char* name = "skip list";
  static constexpr bool may_mislead = true;
  /// The links by which a search descended, from the lowest level of towers up.
  using Path = std::array<Tower**, levels>;

  explicit Towers(const Chain<PersistencePolicy, Key>& chain)
      : chain_(chain), heap_(dram_, chunks_) {}

  Path first_path() {
    Path path;
    for (unsigned level = 0; level < levels; ++level)
      path[level] = &heads_[level];
    return path;
  }

  std::uint64_t* before(const Key& key, Path* path) const {
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
    return left == nullptr ? &chain_.head() : &left->node->next;
  }

  /// Adds a tower to the node with probability 1/4. Without memory for one, a search takes a few
  /// more steps.
  void add(Node<Key>* node, Path& path) {
    const unsigned height =
        std::min(levels, static_cast<unsigned>(std::countr_zero(random_.next() | 1ull << 63)) / 2);
    if (height == 0) return;
    Result<std::uint64_t> link = heap_.take(bytes(height));
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

  /// Removes the tower of the node, if it has one.
  void remove(const Node<Key>* node, const Path& path) {
    Tower* tower = *path[0];
    if (tower == nullptr || tower->node != node) return;
    unsigned height = 0;
    for (; height < levels && *path[height] == tower; ++height)
      *path[height] = tower->next[height];
    heap_.give_back(dram_.link_of(tower), bytes(height));
  }

  void forget() {
    heads_.fill(nullptr);
    heap_.reset();
    height_ = 0;
  }

private:
  static std::size_t bytes(unsigned height) {
    return sizeof(Tower) + (height - 1) * sizeof(Tower*);
  }

  const Chain<PersistencePolicy, Key>& chain_;
  Dram dram_;
  ChunkTable chunks_{};
  NodeHeap<Dram> heap_;
  mutable std::array<Tower*, levels> heads_{};
  unsigned height_ = 0; ///< levels in use
  Random random_{1};
};

template <class PersistencePolicy, class Key>
using SkipList = SortedSet<PersistencePolicy, Key, Towers>;

} // namespace nearfar::structures
