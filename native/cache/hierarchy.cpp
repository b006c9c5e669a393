#include "cache/hierarchy.hpp"

#include <bit>

namespace nearfar::cache {

Hierarchy::Hierarchy(std::vector<Cache> levels, std::optional<Cache> instructions)
    : levels_(std::move(levels)), instructions_(std::move(instructions)), counters_(levels_.size()),
      prefetchers_(levels_.size()),
      line_shift_(static_cast<unsigned>(std::countr_zero(levels_[0].geometry().line_bytes))) {}

Result<Hierarchy> Hierarchy::create(const std::vector<Geometry>& levels,
                                    const std::optional<Geometry>& instructions,
                                    std::uint64_t seed) {
  if (levels.empty())
    return Error::make(Errc::bad_input, "a hierarchy needs at least one level of cache")
        .try_next("name one");
  std::vector<Geometry> all = levels;
  if (instructions) all.push_back(*instructions);
  std::vector<Cache> caches;
  for (const Geometry& geometry : all) {
    if (geometry.line_bytes != all[0].line_bytes)
      return Error::make(Errc::bad_input, "levels with lines of %u and %u bytes are not modeled",
                         all[0].line_bytes, geometry.line_bytes)
          .try_next("give all levels the same line");
    Result<Cache> cache = Cache::create(geometry, seed + caches.size());
    if (!cache) return cache.error();
    caches.push_back(std::move(*cache));
  }
  std::optional<Cache> fetches;
  if (instructions) {
    fetches.emplace(std::move(caches.back()));
    caches.pop_back();
  }
  return Hierarchy(std::move(caches), std::move(fetches));
}

/// Continues an access that missed the first level or is to two lines, down to the level that has
/// them.
void Hierarchy::missed(std::uint64_t line, bool straddles, Access kind) {
  std::uint64_t lines[2] = {line, line + 1};
  std::size_t wanted = straddles ? 2 : 1;
  for (std::size_t level = 0; level < levels_.size(); ++level) {
    Cache& cache = at(level, kind);
    const bool write = level == 0 && writes(kind); // below, a line is dirty once written back
    std::size_t missing = 0;
    for (std::size_t i = 0; i < wanted; ++i)
      if (!cache.touch(lines[i], write) && !arrives(lines[i], level, write))
        lines[missing++] = lines[i];
    wanted = missing;
    LevelCounters& counters = counters_[level];
    if (level > 0) ++counters.references[static_cast<std::size_t>(kind)];
    if (wanted == 0) return;
    ++counters.misses[static_cast<std::size_t>(kind)];
    for (std::size_t i = 0; i < wanted; ++i)
      put(cache, level, lines[i], write);
    if (prefetchers_[level])
      for (std::size_t i = 0; i < wanted; ++i)
        prefetch(lines[i], level);
  }
  for (std::size_t i = 0; i < wanted; ++i)
    emit(lines[i], false);
}

void Hierarchy::put(Cache& cache, std::size_t level, std::uint64_t line, bool write) {
  const Victim victim = cache.fill(line, write);
  if (!victim.present || !victim.dirty) return;
  ++counters_[level].writebacks;
  write_back(victim.line, level);
}

void Hierarchy::write_back(std::uint64_t line, std::size_t from_level) {
  for (std::size_t level = from_level + 1; level < levels_.size(); ++level)
    if (levels_[level].mark_dirty(line)) return;
  emit(line, true);
}

/// Queries the level's prefetcher and inserts its lines.
void Hierarchy::prefetch(std::uint64_t line, std::size_t level) {
  wanted_.clear();
  prefetchers_[level]->missed(line, wanted_);
  for (const std::uint64_t ahead : wanted_)
    bring_in(ahead, level);
}

/// Prefetches a line through the levels below.
void Hierarchy::bring_in(std::uint64_t line, std::size_t level) {
  std::size_t below = level;
  for (; below < levels_.size() && !levels_[below].holds(line); ++below) {
    put(levels_[below], below, line, false);
    ++counters_[below].prefetches;
  }
  if (below == levels_.size()) emit(line, false);
  if (tlb_) tlb_->bring_in(line << line_shift_);
}

/// Whether the level's prefetcher delivers the line in time; if so, it continues the stream.
bool Hierarchy::arrives(std::uint64_t line, std::size_t level, bool write) {
  if (!prefetchers_[level] || !prefetchers_[level]->expects(line)) return false;
  bring_in(line, level);
  prefetch(line, level);
  (void)levels_[level].touch(line, write); // dirty, if it is written
  return true;
}

void Hierarchy::flush(std::uint64_t address, bool evict) {
  const std::uint64_t line = address >> line_shift_;
  bool dirty = false;
  for (std::size_t level = 0; level < levels_.size(); ++level) {
    const Flushed found = levels_[level].flush(line, evict);
    counters_[level].writebacks += found.dirty;
    dirty |= found.dirty;
  }
  if (instructions_ && evict) instructions_->flush(line, true);
  if (dirty) emit(line, true);
}

} // namespace nearfar::cache
