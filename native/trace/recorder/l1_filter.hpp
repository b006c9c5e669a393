// SPDX-License-Identifier: MIT (LICENSE in this folder)
// The first-level cache of one thread: decides which accesses miss.
//
// Replacement    exact LRU. A set is an array of tags, most recently used first, so that one
//                comparison decides most accesses.
// Writes         write-back, write-allocate.
// Thread safety  one thread.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "trace/recorder/ring.hpp"

namespace nearfar::trace {

/// A line, shifted left by one bit; the lowest bit is set if the line is dirty.
using CacheTag = std::uint64_t;

/// Zeroed memory, on which open() is called.
class L1Filter {
public:
  /// False if memory runs out.
  bool open(std::uint32_t sets, std::uint32_t ways) {
    older_ways_ = ways - 1;
    set_mask_ = sets - 1;
    const std::size_t older_bytes = std::size_t{sets} * older_ways_ * sizeof(CacheTag);
    older_ = static_cast<CacheTag*>(std::malloc(older_bytes + 1));
    if (older_ == nullptr) return false;
    std::memset(older_, invalid_byte, older_bytes);
    std::memset(newest_, invalid_byte, sizeof newest_);
    return true;
  }
  /// Frees what open() allocated; a recorder of a program lives as long as its process.
  void close() { std::free(older_); }

  /// The fast path: an access to the most recently used line of its set. False, without a change,
  /// if it is another line or crosses the end of the line.
  template <bool store>
  [[gnu::always_inline]] bool access_newest(std::uint64_t address, std::uint64_t bytes) {
    const std::uint64_t line = address >> ring::line_shift;
    CacheTag& tag = newest_[line & set_mask_];
    if (!matches(tag, line) || crosses_line(address, bytes)) [[unlikely]]
      return false;
    if constexpr (store) tag |= 1;
    return true;
  }

  /// An access to any line. On a miss, returns false and sets `victim` to the evicted tag.
  [[gnu::always_inline]] bool access(std::uint64_t line, bool store, CacheTag& victim) {
    CacheTag& newest = newest_[line & set_mask_];
    if (matches(newest, line)) {
      newest |= store;
      return true;
    }
    CacheTag* older = older_ + (line & set_mask_) * older_ways_;
    CacheTag carried = newest;
    for (unsigned way = 0; way < older_ways_; ++way) { // each tag moves back by one way
      const CacheTag tag = older[way];
      older[way] = carried;
      carried = tag;
      if (!matches(tag, line)) continue;
      newest = tag | store;
      return true;
    }
    newest = line << 1 | store;
    victim = carried;
    return false;
  }

  bool is_newest(std::uint64_t address) const {
    const std::uint64_t line = address >> ring::line_shift;
    return matches(newest_[line & set_mask_], line);
  }

  /// Invalidates a line; true if it was dirty. Its way is replaced by age, as if it were valid.
  bool invalidate(std::uint64_t line) {
    CacheTag& newest = newest_[line & set_mask_];
    CacheTag* older = older_ + (line & set_mask_) * older_ways_;
    CacheTag* found = matches(newest, line) ? &newest : nullptr;
    for (unsigned way = 0; way < older_ways_ && found == nullptr; ++way)
      if (matches(older[way], line)) found = older + way;
    if (found == nullptr) return false;
    const bool dirty = is_dirty(*found);
    *found = invalid;
    return dirty;
  }

  static bool crosses_line(std::uint64_t address, std::uint64_t bytes) {
    return (address & 63) + bytes > 64;
  }
  static bool is_dirty(CacheTag tag) { return (tag & 1) != 0; }
  static std::uint64_t line_of(CacheTag tag) { return tag >> 1; }

private:
  static constexpr int invalid_byte = 0xfe;
  static constexpr CacheTag invalid = 0xfefefefefefefefe; ///< clean

  static bool matches(CacheTag tag, std::uint64_t line) { return (tag ^ line << 1) <= 1; }

  CacheTag newest_[ring::max_sets];
  std::uint64_t set_mask_;
  CacheTag* older_; ///< the other ways of each set, by age
  unsigned older_ways_;
};

} // namespace nearfar::trace
