// From what missed the first level to what reaches memory: L2, last level, TLB and prefetcher.
//
// Purpose        the second half of the filter of `nearfar trace`; the first level is in the
//                recorder.
// Model          an L2 and a TLB for each core, one last level for all; threads beyond the cores
//                share theirs in turn. Write-back, write-allocate, LRU; not inclusive: a line that
//                leaves the last level stays in the levels above. No coherence between cores. An
//                evicted dirty line makes the copy below dirty, and bypasses levels that hold none.
// TLB            is looked up by what missed the first level: walks of accesses that hit are not
//                seen.
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

struct FilterPlan {
  cache::Geometry l2;
  std::optional<cache::Geometry> llc;
  /// Last levels of other sizes, whose misses are counted: how much depends on the size?
  std::vector<cache::Geometry> other_llcs;
  std::vector<cache::TlbLevel> tlb;
  unsigned cores = 1;
  bool prefetch = true;
  After after = After::llc;
};

/// A line that passed the level below which the trace is taken.
struct Passed {
  std::uint64_t line;
  RecordKind kind;
};

class Filter {
public:
  /// Errors: bad_input (a geometry that cannot be; a last level asked for where there is none).
  static Result<Filter> create(const FilterPlan& plan);

  // Prefetches what the models require for an access to the line; changes nothing.
  /// Some lines before.
  void expect(unsigned thread, std::uint64_t line) const {
    core(thread).l2.prefetch(line);
    if (llc_) llc_->prefetch(line);
    for (const cache::Cache& other : others_)
      other.prefetch(line);
  }
  /// Likewise, a line that is written back.
  void expect_back(unsigned thread, std::uint64_t line) const { core(thread).l2.prefetch(line); }
  /// A few lines before: what this one may drive out.
  void expect_victim(unsigned thread, std::uint64_t line) const {
    expect_victim(core(thread), line);
  }

  /// A load or store of a thread missed the first level.
  void missed(unsigned thread, std::uint64_t line, RecordKind kind);
  /// A dirty line left the first level.
  void write_back(unsigned thread, std::uint64_t line);
  /// A line was stored to past the caches: it leaves them first.
  void nt_store(unsigned thread, std::uint64_t line);

  /// What passed since it was last emptied, in order.
  std::vector<Passed> passed;
  /// l2_misses, llc_misses, writebacks, prefetches and tlb_walks are counted here.
  Totals totals;
  /// Misses of each of the other last levels, without those of prefetches.
  std::vector<std::uint64_t> other_misses;

private:
  struct Core {
    cache::Cache l2;
    std::optional<cache::Tlb> tlb;
    std::optional<cache::StreamPrefetcher> prefetcher;
  };

  explicit Filter(After after) : after_(after) {}
  Core& core(unsigned thread) { return cores_[thread % cores_.size()]; }
  const Core& core(unsigned thread) const { return cores_[thread % cores_.size()]; }
  void pass(After level, std::uint64_t line, RecordKind kind) {
    if (level == after_) passed.push_back({line, kind});
  }
  void expect_victim(const Core& core, std::uint64_t line) const {
    if (!llc_) return;
    const cache::Victim victim = core.l2.victim_for(line);
    if (victim.dirty) llc_->prefetch(victim.line);
  }
  void fill_l2(Core& core, std::uint64_t line);
  bool reach_llc(std::uint64_t line, RecordKind kind);
  void reach_others(std::uint64_t line, bool count);
  void prefetch(Core& core, std::uint64_t line);
  void left_l2(std::uint64_t line);
  void left_last(std::uint64_t line);

  After after_;
  std::vector<Core> cores_;
  std::optional<cache::Cache> llc_;
  std::vector<cache::Cache> others_;
  std::vector<std::uint64_t> wanted_;
};

} // namespace nearfar::trace
