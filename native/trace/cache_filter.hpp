// The caches between the first level and memory: L2, last level, TLB and prefetcher.
//
// Purpose        the second half of the filter of `nearfar trace`; the first level is in the
//                recorder.
// Model          an L2 and a TLB for each core, one last level for all; threads beyond the cores
//                share theirs in turn. Write-back, write-allocate, LRU; not inclusive: a line that
//                leaves the last level stays in the levels above. No coherence between cores. An
//                evicted dirty line makes the copy below dirty, and bypasses levels that hold none.
// TLB            is looked up by accesses that missed the first level: page walks of accesses that
//                hit are not counted.
// Thread safety  none.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cache/cache.hpp"
#include "cache/stream_prefetcher.hpp"
#include "cache/tlb.hpp"
#include "trace/format.hpp"

namespace nearfar::trace {

struct HierarchyConfig {
  cache::Geometry l2;
  std::optional<cache::Geometry> llc;
  /// Last levels of other sizes, whose misses are counted to find the effect of the size.
  std::vector<cache::Geometry> other_llcs;
  std::vector<cache::TlbLevel> tlb;
  unsigned cores = 1;
  bool prefetch = true;
  After after = After::llc;
};

/// A line that is transferred from or to the level below which the trace is taken.
struct Transfer {
  std::uint64_t line;
  RecordKind kind;
};

class CacheFilter {
public:
  /// Errors: bad_input (an invalid geometry; a trace after a last level that the plan lacks).
  static Result<CacheFilter> create(const HierarchyConfig& plan);

  // Prefetches what the models require for an access to the line; changes nothing.
  /// Some lines before.
  void warm(unsigned thread, std::uint64_t line) const {
    core(thread).l2.prefetch(line);
    if (llc_) llc_->prefetch(line);
    for (const cache::Cache& other : others_)
      other.prefetch(line);
  }
  /// Likewise, a line that is written back.
  void warm_write_back(unsigned thread, std::uint64_t line) const {
    core(thread).l2.prefetch(line);
  }
  /// A few lines before: the line that this one may evict.
  void warm_victim(unsigned thread, std::uint64_t line) const { warm_victim(core(thread), line); }

  /// A load or store of a thread missed the first level.
  void missed(unsigned thread, std::uint64_t line, RecordKind kind);
  /// A dirty line left the first level.
  void write_back(unsigned thread, std::uint64_t line);
  /// A non-temporal store to a line: the line is evicted first.
  void nt_store(unsigned thread, std::uint64_t line);

  /// Transfers since it was last emptied, in order.
  std::vector<Transfer> transfers;
  /// l2_misses, llc_misses, writebacks, prefetches and tlb_walks are counted here.
  Totals totals;
  /// Misses of each of the other last levels, without those of prefetches.
  std::vector<std::uint64_t> other_llc_misses;

private:
  struct Core {
    cache::Cache l2;
    std::optional<cache::Tlb> tlb;
    std::optional<cache::StreamPrefetcher> prefetcher;
  };

  explicit CacheFilter(After after) : after_(after) {}
  Core& core(unsigned thread) { return cores_[thread % cores_.size()]; }
  const Core& core(unsigned thread) const { return cores_[thread % cores_.size()]; }
  void emit(After level, std::uint64_t line, RecordKind kind) {
    if (level == after_) transfers.push_back({line, kind});
  }
  void warm_victim(const Core& core, std::uint64_t line) const {
    if (!llc_) return;
    const cache::Victim victim = core.l2.victim_for(line);
    if (victim.dirty) llc_->prefetch(victim.line);
  }
  void fill_l2(Core& core, std::uint64_t line);
  bool access_llc(std::uint64_t line, RecordKind kind);
  void access_other_llcs(std::uint64_t line, bool count);
  void prefetch(Core& core, std::uint64_t line);
  void evicted_from_l2(std::uint64_t line);
  void evicted_from_llc(std::uint64_t line);

  After after_;
  std::vector<Core> cores_;
  std::optional<cache::Cache> llc_;
  std::vector<cache::Cache> others_;
  std::vector<std::uint64_t> prefetch_lines_;
};

} // namespace nearfar::trace
