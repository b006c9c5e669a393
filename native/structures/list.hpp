// A persistent sorted list of keys: a set that is searched from its head. Invariants, durability
// order, thread safety and errors: sorted.hpp.
#pragma once

#include "structures/sorted.hpp"

namespace nearfar::structures {

/// No index: every search begins at the head.
template <class PersistencePolicy, class Key>
class NoIndex {
public:
  static constexpr const char* name = "list";
  static constexpr bool may_mislead = false;
  struct Path {};

  explicit NoIndex(const Chain<PersistencePolicy, Key>& chain) : chain_(chain) {}

  Path first_path() const { return {}; }
  std::uint64_t* before(const Key&, Path*) const { return &chain_.head(); }
  void add(const Node<Key>*, const Path&) {}
  void remove(const Node<Key>*, const Path&) {}
  void forget() {}

private:
  const Chain<PersistencePolicy, Key>& chain_;
};

template <class PersistencePolicy, class Key>
using List = SortedSet<PersistencePolicy, Key, NoIndex>;

} // namespace nearfar::structures
