#include "trace/cache_filter.hpp"

namespace nearfar::trace {

Result<CacheFilter> CacheFilter::create(const HierarchyConfig& plan) {
  if (plan.after == After::llc && !plan.llc)
    return Error::make(Errc::bad_input, "this host has no third level of cache")
        .try_next("trace after l2, its last level");
  CacheFilter filter(plan.after);
  if (plan.llc) {
    Result<cache::Cache> llc = cache::Cache::create(*plan.llc);
    if (!llc) return llc.error();
    filter.llc_.emplace(std::move(*llc));
  }
  for (const cache::Geometry& other : plan.other_llcs) {
    Result<cache::Cache> cache = cache::Cache::create(other);
    if (!cache) return cache.error();
    filter.others_.push_back(std::move(*cache));
  }
  filter.other_llc_misses.resize(filter.others_.size());
  for (unsigned i = 0; i < plan.cores; ++i) {
    Result<cache::Cache> l2 = cache::Cache::create(plan.l2);
    if (!l2) return l2.error();
    Core core{std::move(*l2), std::nullopt, std::nullopt};
    if (!plan.tlb.empty()) {
      Result<cache::Tlb> tlb = cache::Tlb::create(plan.tlb);
      if (!tlb) return tlb.error();
      core.tlb.emplace(std::move(*tlb));
    }
    if (plan.prefetch) core.prefetcher.emplace(plan.l2.line_bytes);
    filter.cores_.push_back(std::move(core));
  }
  return filter;
}

void CacheFilter::missed(unsigned thread, std::uint64_t line, RecordKind kind) {
  Core& own = core(thread);
  emit(After::l1, line, kind);
  if (own.tlb) totals[Total::tlb_walks] += own.tlb->access(line * own.l2.geometry().line_bytes);
  if (!own.l2.touch(line, false)) {
    ++totals[Total::l2_misses];
    emit(After::l2, line, kind);
    fill_l2(own, line);
    if (access_llc(line, kind)) ++totals[Total::llc_misses];
    access_other_llcs(line, true);
  }
  if (own.prefetcher) prefetch(own, line);
}

/// Looks a line up in the last level and inserts it; true on a miss.
bool CacheFilter::access_llc(std::uint64_t line, RecordKind kind) {
  if (!llc_) return true;
  if (llc_->touch(line, false)) return false;
  emit(After::llc, line, kind);
  const cache::Victim victim = llc_->fill(line, false);
  if (victim.present && victim.dirty) evicted_from_llc(victim.line);
  return true;
}

/// Likewise in the other last levels, which pass nothing on.
void CacheFilter::access_other_llcs(std::uint64_t line, bool count) {
  for (std::size_t i = 0; i < others_.size(); ++i) {
    if (others_[i].touch(line, false)) continue;
    others_[i].fill(line, false);
    other_llc_misses[i] += count;
  }
}

void CacheFilter::fill_l2(Core& own, std::uint64_t line) {
  const cache::Victim victim = own.l2.fill(line, false);
  if (victim.present && victim.dirty) evicted_from_l2(victim.line);
}

void CacheFilter::prefetch(Core& own, std::uint64_t line) {
  prefetch_lines_.clear();
  own.prefetcher->missed(line, prefetch_lines_);
  for (const std::uint64_t ahead : prefetch_lines_) {
    if (own.l2.holds(ahead)) continue;
    ++totals[Total::prefetches];
    emit(After::l2, ahead, RecordKind::prefetch);
    fill_l2(own, ahead);
    access_llc(ahead, RecordKind::prefetch);
    access_other_llcs(ahead, false);
  }
  if (prefetch_lines_.empty() || !llc_) return;
  const std::uint64_t last = prefetch_lines_.back(); // the stream will go on from there
  const std::uint64_t next = last > line ? last + 2 : last - 2;
  llc_->prefetch(next);
  warm_victim(own, next);
}

void CacheFilter::write_back(unsigned thread, std::uint64_t line) {
  emit(After::l1, line, RecordKind::write_back);
  if (!core(thread).l2.mark_dirty(line)) evicted_from_l2(line);
}

void CacheFilter::evicted_from_l2(std::uint64_t line) {
  emit(After::l2, line, RecordKind::write_back);
  if (!llc_ || !llc_->mark_dirty(line)) evicted_from_llc(line);
}

void CacheFilter::evicted_from_llc(std::uint64_t line) {
  ++totals[Total::writebacks];
  if (llc_) emit(After::llc, line, RecordKind::write_back);
}

void CacheFilter::nt_store(unsigned thread, std::uint64_t line) {
  if (core(thread).l2.flush(line, true).dirty) evicted_from_l2(line);
  if (llc_ && llc_->flush(line, true).dirty) evicted_from_llc(line);
  for (cache::Cache& other : others_)
    other.flush(line, true);
  transfers.push_back({line, RecordKind::nt_store});
}

} // namespace nearfar::trace
