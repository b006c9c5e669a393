// A translation look-aside buffer with one or more levels: counts the accesses with a page walk.
//
// Purpose        numbers of page walks, next to those of cache misses. A level is a cache of page
//                numbers.
// Thread safety  none.
#pragma once

#include <vector>

#include "cache/cache.hpp"

namespace nearfar::cache {

struct TlbLevel {
  unsigned entries = 0;
  unsigned ways = 0;
};

class Tlb {
public:
  /// `levels`: from the one nearest to the core, all LRU. Errors: those of Cache::create.
  static Result<Tlb> create(const std::vector<TlbLevel>& levels, unsigned page_bytes = 4096);

  /// Looks an address up. Returns true if no level has its page; all levels have it afterwards.
  bool access(std::uint64_t address) {
    ++lookups_;
    const std::uint64_t page = address >> page_shift_;
    if (page == youngest_) return false;
    youngest_ = page;
    if (levels_[0].touch(page, false)) return false;
    ++first_misses_;
    return missed(page);
  }

  /// Inserts the page of a prefetched address into all levels, without counting: the prefetch waits
  /// for the walk, but no access waits for the prefetch.
  void bring_in(std::uint64_t address) {
    const std::uint64_t page = address >> page_shift_;
    if (page == brought_in_) return;
    brought_in_ = page;
    for (Cache& level : levels_)
      if (!level.touch(page, false)) level.fill(page, false);
  }

  std::uint64_t lookups() const { return lookups_; }
  std::uint64_t first_misses() const { return first_misses_; } ///< of the level nearest to the core
  std::uint64_t walks() const { return walks_; }

private:
  Tlb(std::vector<Cache> levels, unsigned page_shift)
      : levels_(std::move(levels)), page_shift_(page_shift) {}
  bool missed(std::uint64_t page);

  std::vector<Cache> levels_;
  unsigned page_shift_;
  std::uint64_t youngest_ = ~std::uint64_t{0}; ///< of the first level
  std::uint64_t brought_in_ = ~std::uint64_t{0};
  std::uint64_t lookups_ = 0;
  std::uint64_t first_misses_ = 0;
  std::uint64_t walks_ = 0;
};

} // namespace nearfar::cache
