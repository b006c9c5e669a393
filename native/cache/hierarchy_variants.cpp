#include "cache/hierarchy_variants.hpp"

#include <algorithm>

#include "cache/run_ahead.hpp"

namespace nearfar::cache {

namespace {

/// Maximum number of lines that a stream is ahead: few, so that it does not evict the lines of a
/// small cache.
constexpr unsigned first_ahead = 64;
constexpr unsigned second_ahead = 512;

Result<Hierarchy> make_caches(const VariantsPlan& plan, Policy policy, std::uint64_t last_bytes) {
  std::vector<Geometry> levels = plan.levels;
  if (!levels.empty()) levels.back().size_bytes = last_bytes;
  for (Geometry& level : levels)
    level.policy = policy;
  Result<Hierarchy> caches = Hierarchy::create(levels, std::nullopt, plan.seed);
  if (!caches) return caches;
  for (std::size_t level = 0; level < std::min<std::size_t>(levels.size(), 2); ++level)
    caches->set_prefetcher(level,
                           std::make_unique<RunAhead>(level == 0 ? first_ahead : second_ahead));
  return caches;
}

LevelCounters operator-(const LevelCounters& later, const LevelCounters& earlier) {
  LevelCounters out = later;
  for (std::size_t kind = 0; kind < out.references.size(); ++kind) {
    out.references[kind] -= earlier.references[kind];
    out.misses[kind] -= earlier.misses[kind];
  }
  out.prefetches -= earlier.prefetches;
  out.writebacks -= earlier.writebacks;
  return out;
}

std::vector<LevelCounters> read(const Hierarchy& caches) {
  std::vector<LevelCounters> levels;
  for (std::size_t level = 0; level < caches.levels(); ++level)
    levels.push_back(caches.counters(level));
  return levels;
}

} // namespace

Result<HierarchyVariants> HierarchyVariants::create(const VariantsPlan& plan) {
  std::vector<Variant> variants;
  std::vector<std::uint64_t> sizes = plan.last_bytes;
  sizes.insert(sizes.begin(), plan.levels.empty() ? 0 : plan.levels.back().size_bytes);
  for (const std::uint64_t last_bytes : sizes)
    for (const Policy policy : {Policy::lru, Policy::random})
      for (const bool evicts : {true, false}) {
        if (evicts ? !plan.evicting : !plan.keeping) continue;
        Result<Hierarchy> caches = make_caches(plan, policy, last_bytes);
        if (!caches) return caches.error();
        variants.push_back({std::move(*caches), policy, evicts, last_bytes, {}, 0});
      }
  if (variants.empty())
    return Error::make(Errc::bad_input, "flushes either evict their lines or keep them");
  Result<Tlb> tlb = Tlb::create(plan.tlb, plan.page_bytes);
  if (!tlb) return tlb.error();
  variants.front().caches.set_tlb(std::move(*tlb));
  HierarchyVariants all(std::move(variants));
  all.forget_counts();
  return all;
}

void HierarchyVariants::access(std::uint64_t address, std::size_t bytes, Access kind) {
  const unsigned line = variants_.front().caches.line_bytes();
  while (bytes > 0) { // long ones line by line: a copy is as many loads
    const std::size_t piece =
        bytes <= 16 ? bytes : std::min<std::size_t>(bytes, line - address % line);
    access_line(address, static_cast<unsigned>(piece), kind);
    address += piece;
    bytes -= piece;
  }
}

void HierarchyVariants::access_line(std::uint64_t address, unsigned bytes, Access kind) {
  const bool far = kind == Access::load && address - far_begin_ < far_end_ - far_begin_;
  for (Variant& variant : variants_) {
    const LevelCounters& last = variant.caches.counters(variant.caches.levels() - 1);
    const std::uint64_t before = last.load_misses();
    variant.caches.access(address, bytes, kind);
    if (far) variant.far_load_misses += last.load_misses() - before;
  }
}

void HierarchyVariants::flush(std::uint64_t address) {
  for (Variant& variant : variants_) {
    variant.caches.access(address, 1, Access::store);
    variant.caches.flush(address, variant.flush_evicts);
  }
}

void HierarchyVariants::forget_counts() {
  for (Variant& variant : variants_) {
    variant.before = read(variant.caches);
    variant.far_load_misses = 0;
  }
  tlb_misses_before_ = tlb().first_misses();
  walks_before_ = tlb().walks();
}

std::vector<VariantCounts> HierarchyVariants::counts() const {
  std::vector<VariantCounts> all;
  for (const Variant& variant : variants_) {
    VariantCounts& counts = all.emplace_back();
    counts.policy = variant.policy;
    counts.flush_evicts = variant.flush_evicts;
    counts.last_bytes = variant.last_bytes;
    counts.far_load_misses = variant.far_load_misses;
    const std::vector<LevelCounters> now = read(variant.caches);
    for (std::size_t level = 0; level < now.size(); ++level)
      counts.levels.push_back(now[level] - variant.before[level]);
  }
  return all;
}

} // namespace nearfar::cache
