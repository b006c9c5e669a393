// Mappings that a process itself has made, from the events of its log.
//
// Fork           a child begins with the mappings of its parent, as they were at the parent's last
//                event before follow() of the child.
// Untrusted      the program may write any event. At most max_ranges are kept.
// Thread safety  none.
// Units          bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "alloclog/slot_file.hpp"

namespace nearfar::alloclog {

using ImageNumber = std::uint32_t;

/// A site by number, in the image that it belongs to: the process, or one that it was forked from.
struct SiteReference {
  ImageNumber image;
  std::uint16_t number;
  friend bool operator==(const SiteReference&, const SiteReference&) = default;
};

/// Mapping of one call of mmap(). Parts of it may have been unmapped since.
struct MappedBlock {
  std::uint64_t begin;
  std::uint64_t bytes;
  SiteReference site;
};

/// Mappings of one site, in this process.
struct MappingTotals {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t peak_live_bytes = 0;
};

class Mappings {
public:
  static constexpr std::size_t max_ranges = 1 << 20;

  Mappings() = default;
  /// The mappings of a child that was just forked.
  static Mappings forked_from(const Mappings& parent);

  /// Applies the events since the last call. `image` is the number of the process image.
  void follow(const SlotFile& file, ImageNumber image);

  std::optional<MappedBlock> find(std::uint64_t address) const;
  /// The last mapping at an address where nothing is mapped any more.
  std::optional<MappedBlock> find_unmapped(std::uint64_t address) const;
  /// nullptr if the site has not mapped anything.
  const MappingTotals* totals(std::uint16_t site) const;
  /// Events that were overwritten before they were read.
  std::uint64_t lost() const { return lost_; }

private:
  struct Range {
    std::uint64_t end;
    MappedBlock block; ///< that it is of, whole
  };

  using Ranges = std::map<std::uint64_t, Range>; ///< by begin, without overlap

  static std::optional<MappedBlock> found(const Ranges& ranges, std::uint64_t address);
  /// Takes the ranges between two addresses out, and calls `visit(begin, end, block)` for each.
  template <class Visit>
  static void cut(Ranges& ranges, std::uint64_t begin, std::uint64_t end, Visit visit);
  void apply(const MappingEvent& event, ImageNumber image);
  void add(const MappedBlock& block, ImageNumber image);
  void remove(std::uint64_t begin, std::uint64_t end, ImageNumber image);
  void count_removed(const SiteReference& site, std::uint64_t bytes, ImageNumber image);

  Ranges ranges_;
  Ranges unmapped_; ///< also where something is mapped again
  std::map<std::uint16_t, MappingTotals> totals_;
  std::uint64_t applied_ = 0; ///< number of the last event
  std::uint64_t lost_ = 0;
};

} // namespace nearfar::alloclog
