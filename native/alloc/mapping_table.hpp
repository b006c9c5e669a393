// Intervals of placed mappings, by address, each with its rule.
//
// Data           a treap with memory of its own: searching, inserting and removing take a time
//                logarithmic in the number of intervals, and no recursion.
// Errors         if memory is exhausted, an interval is not recorded: it is placed, but neither
//                counted nor found later.
// Thread safety  none: PlacedMappings guards the table.
#pragma once

#include <cstddef>
#include <cstdint>

#include "alloc/mapping_rules.hpp"
#include "alloc/metadata.hpp"

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
  SharedOrigin* share(const MappingOrigin& origin);
  /// Frees an origin that no interval uses.
  void discard(SharedOrigin* shared);
  /// Keeps an origin while its last interval may be removed, until drop(). Both accept nullptr.
  static void keep(SharedOrigin* shared) {
    if (shared != nullptr) ++shared->intervals;
  }
  void drop(SharedOrigin* shared) {
    if (shared != nullptr) --shared->intervals;
    discard(shared);
  }

  /// Whether a new interval and adjacent ones with the same rule become one. Their origins have to
  /// agree in all but their bytes, and become one for all of these.
  enum class Neighbors : std::uint8_t { separate, merged };
  /// Adds an interval, which overlaps none. Returns false if memory is exhausted.
  bool insert(MappedInterval interval, Neighbors neighbors = Neighbors::separate);

  /// The first interval that has bytes of [begin, end), nullptr if there is none. Valid until the
  /// table changes.
  const MappedInterval* first_in(std::uintptr_t begin, std::uintptr_t end) const;
  /// The interval behind another one, nullptr if there is none.
  const MappedInterval* next(const MappedInterval& interval) const {
    return first_in(interval.end, UINTPTR_MAX);
  }

  /// Removes the first part of an interval that is in [begin, end), and stores it in `removed`: its
  /// origin lives until discard(), or until an interval is inserted. Returns false if there is
  /// none.
  bool take_first(std::uintptr_t begin, std::uintptr_t end, MappedInterval& removed);

private:
  struct Node {
    MappedInterval interval;
    Node* below = nullptr;      ///< intervals at lower addresses
    Node* above = nullptr;      ///< intervals at higher addresses
    std::uint64_t priority = 0; ///< not below those of the nodes below and above
  };

  Node** find(std::uintptr_t address);
  bool add_node(const MappedInterval& interval);
  void remove_node(Node** link);
  void absorb_neighbors(MappedInterval& interval);

  MetadataPool memory_;
  Node* root_ = nullptr;
  std::uint64_t random_ = 0; ///< state of the priorities
};

} // namespace nearfar::alloc
