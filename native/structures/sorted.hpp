// What a sorted list and a skip list do alike over a chain: recovery, bulk loading, checking.
//
// Thread safety  as its caller's lock says.
#pragma once

#include <algorithm>
#include <vector>

#include "structures/chain.hpp"

namespace nearfar::structures {

/// What was wanted of an operation, once it is done.
template <class Medium, class Key>
Result<bool> settled(const Chain<Medium, Key>& chain, bool result) {
  if (chain.failed()) return sync_failed();
  return result;
}

/// Walks a chain at open: keys must ascend. Calls visit(where, node) for each.
template <class Medium, class Key, class Visit>
Status recover_sorted(Chain<Medium, Key>& chain, Visit visit) {
  const Node<Key>* before = nullptr;
  return chain.recover([&](std::uint64_t* where, Node<Key>* node) {
    if (before != nullptr && !(before->value < node->value)) return false;
    before = node;
    visit(where, node);
    return true;
  });
}

/// Adds the keys that are not there yet with two fences in all; how many they were. All are durable
/// when it returns; a crash before that may leave any part. no_space: nothing has changed.
template <class Medium, class Key>
Result<std::size_t> load_sorted(Chain<Medium, Key>& chain, std::vector<Key> keys) {
  std::sort(keys.begin(), keys.end());
  std::vector<Node<Key>*> made;
  std::vector<std::pair<std::uint64_t*, const Node<Key>*>> runs;
  std::uint64_t* where = &chain.head(); // the last link before the key that was there already
  Node<Key>* last = nullptr;            // the last new node behind it
  for (const Key& key : keys) {
    if (last != nullptr && !(last->value < key)) continue;
    for (const Node<Key>* next = chain.at(*where); next != nullptr && next->value < key;
         next = chain.at(*where)) {
      where = &chain.at(*where)->next;
      last = nullptr;
    }
    const Node<Key>* next = chain.at(*where);
    if (next != nullptr && !(key < next->value)) continue;
    Result<Node<Key>*> node = chain.make(key, *where);
    if (!node) {
      chain.drop(made);
      return node.error();
    }
    if (last != nullptr)
      chain.set_next(last, chain.link_of(*node));
    else
      runs.emplace_back(where, *node);
    made.push_back(last = *node);
  }
  chain.fence();
  chain.link_runs(runs);
  if (chain.failed()) return sync_failed();
  return made.size();
}

} // namespace nearfar::structures
