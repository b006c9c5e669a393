// Which address belongs to which rule: intervals of placed mappings, by address.
//
// Errors         if memory is exhausted, an interval is not recorded: it is placed, but neither
//                counted nor found later.
// Thread safety  none: PlacedMappings guards the table.
#pragma once

#include <cstddef>
#include <cstdint>

#include "alloc/mapping_rules.hpp"

namespace nearfar::alloc {

/// An origin that several intervals share.
struct SharedOrigin {
  MappingOrigin origin;
  std::size_t intervals = 0;
};

struct MappedInterval {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  MappingRule* rule = nullptr; ///< nullptr: none names these bytes of the mapping
  SharedOrigin* shared = nullptr;

  std::size_t bytes() const { return end - begin; }
};

class MappingTable {
public:
  constexpr MappingTable() = default;
  MappingTable(const MappingTable&) = delete;
  MappingTable& operator=(const MappingTable&) = delete;

  /// A copy of the origin for intervals; nullptr if memory is exhausted. To be passed to insert(),
  /// or to discard().
  static SharedOrigin* share(const MappingOrigin& origin);
  /// Frees an origin that no interval uses.
  static void discard(SharedOrigin* shared);

  /// Adds an interval, which overlaps none. Returns false if memory is exhausted.
  bool insert(const MappedInterval& interval);

  /// The first interval that has bytes of [begin, end), nullptr if there is none. Valid until the
  /// table changes.
  const MappedInterval* first_in(std::uintptr_t begin, std::uintptr_t end) const;

  /// Removes the first part of an interval that is in [begin, end), and stores it in `removed`: its
  /// origin lives until discard(). Returns false if there is none.
  bool take_first(std::uintptr_t begin, std::uintptr_t end, MappedInterval& removed);

  const MappedInterval* begin() const { return intervals_; }
  const MappedInterval* end() const { return intervals_ + count_; }

private:
  std::size_t lower_bound(std::uintptr_t address) const;
  bool reserve_one();
  bool insert_at(std::size_t index, const MappedInterval& interval);
  void remove_at(std::size_t index);

  MappedInterval* intervals_ = nullptr;
  std::size_t count_ = 0;
  std::size_t capacity_ = 0;
};

} // namespace nearfar::alloc
