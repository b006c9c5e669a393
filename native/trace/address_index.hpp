// An ordered map from addresses to numbers: finds the last entry at or before an address, and the
// first one after it.
//
// Form           a tree whose nodes have 64 children and a word with a bit for each child that has
//                entries; a leaf covers 4 KiB of addresses. The number of steps does not depend on
//                the number of entries.
// Precision      8 bytes, the alignment of allocators.
// Memory         2 KiB for each 4 KiB of addresses with an entry.
// Thread safety  none. Copies are independent.
#pragma once

#include <array>
#include <cstdint>
#include <deque>

namespace nearfar::trace {

class AddressIndex {
public:
  static constexpr std::uint32_t none = 0;

  /// `number` replaces what was there; it is not `none`. Address below 2^48.
  void set(std::uint64_t address, std::uint32_t number);
  void erase(std::uint64_t address);

  std::uint32_t at(std::uint64_t address) const {
    const Leaf* leaf = find_leaf(address >> page_bits);
    return leaf == nullptr ? none : leaf->numbers[slot_of(address)];
  }
  /// The last one at or before an address.
  std::uint32_t at_or_before(std::uint64_t address) const;
  /// The first one after an address.
  std::uint32_t after(std::uint64_t address) const;

private:
  static constexpr unsigned page_bits = 12;
  static constexpr unsigned slot_bits = 3; ///< log2 of the bytes that share a slot
  static constexpr unsigned slots_per_leaf = 1u << (page_bits - slot_bits);
  static constexpr unsigned levels = 6; ///< of nodes, 6 bits of the page each

  struct Leaf {
    std::array<std::uint64_t, slots_per_leaf / 64> present{};
    std::array<std::uint32_t, slots_per_leaf> numbers{};
  };
  struct Node {
    std::uint64_t present = 0;             ///< children that hold anything
    std::array<std::uint32_t, 64> child{}; ///< number of a node, or of a leaf at the lowest level
  };
  using Path = std::array<std::uint32_t, levels>; ///< nodes from the root on

  static unsigned slot_of(std::uint64_t address) {
    return static_cast<unsigned>(address >> slot_bits) % slots_per_leaf;
  }
  static unsigned digit(std::uint64_t page, unsigned level) {
    return static_cast<unsigned>(page >> 6 * (levels - 1 - level)) & 63;
  }

  static bool holds_anything(const Leaf& leaf);
  const Leaf* find_leaf(std::uint64_t page) const;
  Leaf& make_leaf(std::uint64_t page);
  void forget(std::uint64_t page);
  unsigned descend(std::uint64_t page, Path& path) const;
  const Leaf* adjacent_leaf(std::uint64_t page, bool before) const;
  static std::uint32_t last(const Leaf& leaf, unsigned slot);
  static std::uint32_t first(const Leaf& leaf, unsigned slot);

  std::deque<Node> nodes_ = std::deque<Node>(1);
  std::deque<Leaf> leaves_ = std::deque<Leaf>(1); ///< number 0 is none
  /// Leaves that were found last, by the lowest bits of their pages.
  struct Found {
    std::uint64_t page = ~std::uint64_t{0};
    std::uint32_t leaf = 0;
  };
  mutable std::array<Found, 64> found_;
};

} // namespace nearfar::trace
