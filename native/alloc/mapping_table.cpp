#include "alloc/mapping_table.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/random.hpp"

namespace nearfar::alloc {

namespace {

/// Whether rules that do not depend on size, address and range treat both alike.
bool is_same_origin(const MappingOrigin& a, const MappingOrigin& b) {
  return a.kind == b.kind && a.chain_length == b.chain_length &&
         std::equal(a.chain, a.chain + a.chain_length, b.chain) && std::strcmp(a.name, b.name) == 0;
}

/// Adds the bytes of another origin.
void widen(MappingOrigin& origin, const MappingOrigin& other) {
  const std::uintptr_t end = std::max(origin.end(), other.end());
  origin.begin = std::min(origin.begin, other.begin);
  origin.bytes = end - origin.begin;
}

} // namespace

SharedOrigin* MappingTable::share(const MappingOrigin& origin) {
  void* memory = memory_.allocate(sizeof(SharedOrigin));
  return memory == nullptr ? nullptr : new (memory) SharedOrigin{origin, 0};
}

void MappingTable::free_if_unused(SharedOrigin* shared) {
  if (shared != nullptr && shared->intervals == 0) memory_.release(shared, sizeof(SharedOrigin));
}

/// The link to the first node that ends behind an address, and to nullptr if there is none.
MappingTable::Node** MappingTable::find(std::uintptr_t address) {
  static Node* none = nullptr;
  Node** found = &none;
  for (Node** link = &root_; *link != nullptr;) {
    if (address < (*link)->interval.end) {
      found = link;
      link = &(*link)->below;
    } else {
      link = &(*link)->above;
    }
  }
  return found;
}

/// Inserts a node above those of lower priority, which are divided at its address.
bool MappingTable::add_node(const MappedInterval& interval) {
  void* memory = memory_.allocate(sizeof(Node));
  if (memory == nullptr) return false;
  random_ = next_mmix(random_);
  Node* node = new (memory) Node{interval, nullptr, nullptr, random_ >> 32};
  Node** link = &root_;
  while (*link != nullptr && (*link)->priority >= node->priority)
    link = interval.begin < (*link)->interval.begin ? &(*link)->below : &(*link)->above;
  Node** below = &node->below;
  Node** above = &node->above;
  for (Node* rest = *link; rest != nullptr;) {
    if (rest->interval.begin < interval.begin) {
      *below = rest;
      below = &rest->above;
      rest = rest->above;
    } else {
      *above = rest;
      above = &rest->below;
      rest = rest->below;
    }
  }
  *below = *above = nullptr;
  *link = node;
  ++interval.shared->intervals;
  return true;
}

/// Replaces a node by those below and above it.
void MappingTable::remove_node(Node** link) {
  Node* node = *link;
  Node* below = node->below;
  Node* above = node->above;
  while (below != nullptr && above != nullptr) {
    const bool is_below = below->priority >= above->priority;
    Node*& top = is_below ? below : above;
    *link = top;
    link = is_below ? &top->above : &top->below;
    top = *link;
  }
  *link = below != nullptr ? below : above;
  --node->interval.shared->intervals;
  memory_.release(node, sizeof(Node));
}

/// Removes the intervals that end where `interval` begins, or begin where it ends, and have the same
/// rule and an equal origin; `interval` becomes all of them, with its own origin.
void MappingTable::absorb_neighbors(MappedInterval& interval) {
  SharedOrigin* shared = interval.shared;
  keep(shared);
  const auto absorb = [&](Node** link) {
    const MappedInterval other = (*link)->interval;
    if (other.rule != interval.rule || !is_same_origin(other.shared->origin, shared->origin))
      return;
    interval.begin = std::min(interval.begin, other.begin);
    interval.end = std::max(interval.end, other.end);
    widen(shared->origin, other.shared->origin);
    remove_node(link);
    free_if_unused(other.shared);
  };
  if (Node** before = find(interval.begin - 1);
      *before != nullptr && (*before)->interval.end == interval.begin)
    absorb(before);
  if (Node** behind = find(interval.end);
      *behind != nullptr && (*behind)->interval.begin == interval.end)
    absorb(behind);
  --shared->intervals; // that of the caller
}

bool MappingTable::insert(MappedInterval interval, Neighbors neighbors) {
  if (neighbors == Neighbors::merged) absorb_neighbors(interval);
  return add_node(interval);
}

const MappedInterval* MappingTable::first_in(std::uintptr_t begin, std::uintptr_t end) const {
  const Node* found = *const_cast<MappingTable*>(this)->find(begin);
  return found != nullptr && found->interval.begin < end ? &found->interval : nullptr;
}

bool MappingTable::take_first(std::uintptr_t begin, std::uintptr_t end, MappedInterval& removed) {
  Node** link = find(begin);
  if (*link == nullptr || (*link)->interval.begin >= end) return false;
  MappedInterval& found = (*link)->interval;
  removed = found;
  removed.begin = std::max(found.begin, begin);
  removed.end = std::min(found.end, end);
  const MappedInterval behind = {removed.end, found.end, found.rule, found.shared};
  if (found.begin < removed.begin)
    found.end = removed.begin;
  else
    remove_node(link);
  // Without memory the rest is forgotten.
  if (behind.begin < behind.end) insert(behind);
  return true;
}

} // namespace nearfar::alloc
