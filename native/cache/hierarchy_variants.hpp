// The caches of a host under one stream of accesses, with several assumptions at the same time.
//
// Purpose        simulated counters of a region of interest, and the misses for predictions.
// Assumptions    replacement is LRU or random; a flush evicts its line or keeps it; the size of the
//                last level that other virtual machines leave is unknown.
// Prefetching    by streams, into the first two levels.
// Page walks     counted once, because they do not depend on the assumptions.
// Thread safety  none.
#pragma once

#include <vector>

#include "cache/hierarchy.hpp"

namespace nearfar::cache {

struct VariantsPlan {
  std::vector<Geometry> levels; ///< from the one nearest to the core; variants set the policy
  std::vector<std::uint64_t> last_bytes; ///< additional possible sizes of the last level
  std::vector<TlbLevel> tlb;             ///< at least one
  unsigned page_bytes = 4096;
  bool evicting = true; ///< whether to assume that flushes evict their lines
  bool keeping = true;  ///< whether to assume that they keep them; at least one of both is true
  std::uint64_t seed = 1;
};

/// One set of assumptions, and the counters of each level.
struct VariantCounts {
  Policy policy = Policy::lru;
  bool flush_evicts = true;
  std::uint64_t last_bytes = 0; ///< of the last level
  std::vector<LevelCounters> levels;
  std::uint64_t far_load_misses = 0; ///< of the last level, for addresses in far memory
};

class HierarchyVariants {
public:
  static Result<HierarchyVariants> create(const VariantsPlan& plan);

  /// Sets the addresses of far memory; initially there are none.
  void set_far(std::uint64_t begin, std::uint64_t end) {
    far_begin_ = begin;
    far_end_ = end;
  }

  /// Executes an access to any number of bytes.
  void access(std::uint64_t address, std::size_t bytes, Access kind);
  /// Flushes a line. If access() did not write it, code that is not instrumented did.
  void flush(std::uint64_t address);
  /// Resets the counters, and keeps the contents.
  void forget_counts();

  std::vector<VariantCounts> counts() const;
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
  explicit HierarchyVariants(std::vector<Variant> variants) : variants_(std::move(variants)) {}
  const Tlb& tlb() const { return *variants_.front().caches.tlb(); }

  std::vector<Variant> variants_;
  std::uint64_t far_begin_ = 0;
  std::uint64_t far_end_ = 0;
  std::uint64_t tlb_misses_before_ = 0;
  std::uint64_t walks_before_ = 0;
};

} // namespace nearfar::cache
