// The caches of a host under one stream of accesses, under each of several assumptions at once.
//
// Purpose        simulated counters of a region of interest, and the misses that predictions price.
// Assumptions    replacement is LRU or random; a flush evicts its line or keeps it; the last level
//                is as large as other virtual machines leave it, which is unknown.
// Prefetching    by streams, into the first two levels.
// Page walks     counted once, for they depend on none of that.
// Thread safety  none.
#pragma once

#include <vector>

#include "cache/hierarchy.hpp"

namespace nearfar::cache {

struct WatchedPlan {
  std::vector<Geometry> levels; ///< from the one nearest the core; policies are the variants'
  std::vector<std::uint64_t> last_bytes; ///< other sizes that the last level may have
  std::vector<TlbLevel> tlb;             ///< at least one
  unsigned page_bytes = 4096;
  bool evicting = true; ///< assume that flushes evict
  bool keeping = true;  ///< assume that they keep; at least one of both
  std::uint64_t seed = 1;
};

/// One assumption, and what each level counted under it.
struct WatchedCounts {
  Policy policy = Policy::lru;
  bool flush_evicts = true;
  std::uint64_t last_bytes = 0; ///< of the last level
  std::vector<LevelCounters> levels;
  std::uint64_t far_load_misses = 0; ///< of the last level, at addresses of far memory
};

class Watched {
public:
  static Result<Watched> create(const WatchedPlan& plan);

  /// Which addresses are far memory; none at first.
  void set_far(std::uint64_t begin, std::uint64_t end) {
    far_begin_ = begin;
    far_end_ = end;
  }

  /// Any number of bytes from anywhere.
  void access(std::uint64_t address, std::size_t bytes, Access kind);
  /// A line was stored to, by code that is not instrumented if not by access(), and flushed.
  void flush(std::uint64_t address);
  /// Counts begin anew; contents stay.
  void forget_counts();

  std::vector<WatchedCounts> counts() const;
  std::uint64_t tlb_misses() const { return tlb().first_misses() - tlb_misses_before_; }
  std::uint64_t walks() const { return tlb().walks() - walks_before_; }

private:
  struct Variant {
    Hierarchy caches;
    Policy policy;
    bool flush_evicts;
    std::uint64_t last_bytes;
    std::vector<LevelCounters> before;
    std::uint64_t far_load_misses = 0;
  };
  void access_line(std::uint64_t address, unsigned bytes, Access kind);
  explicit Watched(std::vector<Variant> variants) : variants_(std::move(variants)) {}
  const Tlb& tlb() const { return *variants_.front().caches.tlb(); }

  std::vector<Variant> variants_;
  std::uint64_t far_begin_ = 0;
  std::uint64_t far_end_ = 0;
  std::uint64_t tlb_misses_before_ = 0;
  std::uint64_t walks_before_ = 0;
};

} // namespace nearfar::cache
