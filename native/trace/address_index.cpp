#include "trace/address_index.hpp"

#include <bit>

namespace nearfar::trace {

namespace {

constexpr std::uint64_t all = ~std::uint64_t{0};

unsigned lowest(std::uint64_t word) { return static_cast<unsigned>(std::countr_zero(word)); }
unsigned highest(std::uint64_t word) { return 63 - static_cast<unsigned>(std::countl_zero(word)); }
std::uint64_t below(unsigned bit) { return (std::uint64_t{1} << bit) - 1; }
std::uint64_t above(unsigned bit) { return (all - 1) << bit; }

} // namespace

bool AddressIndex::holds_anything(const Leaf& leaf) {
  std::uint64_t any = 0;
  for (const std::uint64_t word : leaf.present)
    any |= word;
  return any != 0;
}

const AddressIndex::Leaf* AddressIndex::find_leaf(std::uint64_t page) const {
  Found& found = found_[page % found_.size()];
  if (page == found.page) return &leaves_[found.leaf];
  std::uint32_t at = 0;
  for (unsigned level = 0; level < levels; ++level) {
    at = nodes_[at].child[digit(page, level)];
    if (at == 0) return nullptr;
  }
  found = {page, at};
  return &leaves_[at];
}

AddressIndex::Leaf& AddressIndex::make_leaf(std::uint64_t page) {
  const Found& found = found_[page % found_.size()];
  if (page == found.page && holds_anything(leaves_[found.leaf])) return leaves_[found.leaf];
  std::uint32_t at = 0;
  for (unsigned level = 0; level < levels; ++level) {
    const unsigned which = digit(page, level);
    nodes_[at].present |= std::uint64_t{1} << which;
    if (nodes_[at].child[which] == 0) {
      const bool lowest_level = level == levels - 1;
      nodes_[at].child[which] =
          static_cast<std::uint32_t>(lowest_level ? leaves_.size() : nodes_.size());
      if (lowest_level)
        leaves_.emplace_back();
      else
        nodes_.emplace_back();
    }
    at = nodes_[at].child[which];
  }
  return leaves_[at];
}

void AddressIndex::set(std::uint64_t address, std::uint32_t number) {
  Leaf& leaf = make_leaf(address >> page_bits);
  const unsigned slot = slot_of(address);
  leaf.present[slot / 64] |= std::uint64_t{1} << slot % 64;
  leaf.numbers[slot] = number;
}

void AddressIndex::erase(std::uint64_t address) {
  const std::uint64_t page = address >> page_bits;
  Leaf* leaf = const_cast<Leaf*>(find_leaf(page));
  if (leaf == nullptr) return;
  const unsigned slot = slot_of(address);
  leaf->numbers[slot] = none;
  leaf->present[slot / 64] &= ~(std::uint64_t{1} << slot % 64);
  if (!holds_anything(*leaf)) forget(page);
}

/// An empty leaf stays, and is skipped when neighbors are searched.
void AddressIndex::forget(std::uint64_t page) {
  Path path;
  for (unsigned level = descend(page, path) + 1; level-- > 0;) {
    Node& node = nodes_[path[level]];
    node.present &= ~(std::uint64_t{1} << digit(page, level));
    if (node.present != 0) return;
  }
}

/// The nodes towards a page, down to the last one that has entries there; returns its level.
unsigned AddressIndex::descend(std::uint64_t page, Path& path) const {
  path[0] = 0;
  unsigned level = 0;
  for (; level + 1 < levels; ++level) {
    const Node& node = nodes_[path[level]];
    const unsigned which = digit(page, level);
    if ((node.present >> which & 1) == 0) break;
    path[level + 1] = node.child[which];
  }
  return level;
}

/// The nearest leaf with entries on one side of a page.
const AddressIndex::Leaf* AddressIndex::adjacent_leaf(std::uint64_t page, bool before) const {
  Path path;
  for (unsigned level = descend(page, path) + 1; level-- > 0;) {
    const unsigned own = digit(page, level);
    std::uint32_t at = path[level];
    std::uint64_t candidates = nodes_[at].present & (before ? below(own) : above(own));
    if (candidates == 0) continue;
    for (;; candidates = nodes_[at].present) {
      at = nodes_[at].child[before ? highest(candidates) : lowest(candidates)];
      if (++level == levels) return &leaves_[at];
    }
  }
  return nullptr;
}

/// The last entry of a leaf at or before a slot.
std::uint32_t AddressIndex::last(const Leaf& leaf, unsigned slot) {
  std::uint64_t candidates = leaf.present[slot / 64] & ~above(slot % 64);
  for (unsigned word = slot / 64;; candidates = leaf.present[--word]) {
    if (candidates != 0) return leaf.numbers[64 * word + highest(candidates)];
    if (word == 0) return none;
  }
}

/// The first entry of a leaf at or after a slot.
std::uint32_t AddressIndex::first(const Leaf& leaf, unsigned slot) {
  std::uint64_t candidates = leaf.present[slot / 64] & ~below(slot % 64);
  for (unsigned word = slot / 64;; candidates = leaf.present[++word]) {
    if (candidates != 0) return leaf.numbers[64 * word + lowest(candidates)];
    if (word + 1 == leaf.present.size()) return none;
  }
}

std::uint32_t AddressIndex::at_or_before(std::uint64_t address) const {
  const std::uint64_t page = address >> page_bits;
  if (const Leaf* leaf = find_leaf(page))
    if (const std::uint32_t found = last(*leaf, slot_of(address))) return found;
  const Leaf* before = adjacent_leaf(page, true);
  return before == nullptr ? none : last(*before, slots_per_leaf - 1);
}

std::uint32_t AddressIndex::after(std::uint64_t address) const {
  const std::uint64_t page = address >> page_bits;
  const unsigned slot = slot_of(address) + 1;
  if (const Leaf* leaf = slot < slots_per_leaf ? find_leaf(page) : nullptr)
    if (const std::uint32_t found = first(*leaf, slot)) return found;
  const Leaf* after = adjacent_leaf(page, false);
  return after == nullptr ? none : first(*after, 0);
}

} // namespace nearfar::trace
