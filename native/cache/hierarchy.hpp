// Levels of caches with a TLB and prefetchers, under a stream of accesses.
//
// Purpose        simulated counters, and the filter between a program's accesses and its memory.
// Rule           a miss of a level is looked up in the next level and fills it, as in cachegrind.
//                Levels are not inclusive: a line that a lower level evicts stays in the levels
//                above. A dirty line that leaves a level makes its copy in the next level dirty,
//                without an effect on the replacement order, and bypasses levels without a copy.
// Counting       an access to two lines counts once, and as one miss if either line misses;
//                traffic is counted in lines.
// Thread safety  none; one hierarchy a thread.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "cache/cache.hpp"
#include "cache/tlb.hpp"

namespace nearfar::cache {

/// `modify` is a load whose line becomes dirty. It counts as a load, as in cachegrind.
enum class Access : unsigned char { load, store, modify, fetch };

struct LevelCounters {
  std::array<std::uint64_t, 4> references{}; ///< by Access
  std::array<std::uint64_t, 4> misses{};     ///< by Access
  std::uint64_t prefetches = 0;              ///< prefetched lines
  std::uint64_t writebacks = 0;              ///< dirty lines that were evicted or flushed

  std::uint64_t loads() const { return references[0] + references[2]; }
  std::uint64_t load_misses() const { return misses[0] + misses[2]; }
  std::uint64_t stores() const { return references[1]; }
  std::uint64_t store_misses() const { return misses[1]; }
  std::uint64_t fetches() const { return references[3]; }
  std::uint64_t fetch_misses() const { return misses[3]; }
};

inline bool writes(Access kind) { return kind == Access::store || kind == Access::modify; }

/// A line that passed the last level, in the order of events.
struct Traffic {
  std::uint64_t line;
  bool write; ///< true: a write-back; false: a line fetched from memory
};

/// Receives the demand misses of a level, and returns lines to prefetch after each.
class Prefetcher {
public:
  virtual ~Prefetcher() = default;
  /// Appends line numbers to `wanted`. The caller skips lines that are present.
  virtual void missed(std::uint64_t line, std::vector<std::uint64_t>& wanted) = 0;
  /// Whether a real prefetcher would have prefetched this absent line by now.
  virtual bool expects(std::uint64_t line) const {
    (void)line;
    return false;
  }
};

class Hierarchy {
public:
  /// `levels`: from the one nearest to the core; `instructions`: a separate first level for
  /// fetches. Errors: bad_input (no level, different line sizes).
  static Result<Hierarchy> create(const std::vector<Geometry>& levels,
                                  const std::optional<Geometry>& instructions = std::nullopt,
                                  std::uint64_t seed = 1);

  /// Executes an access of `size` bytes, at least 1 and at most a line.
  void access(std::uint64_t address, unsigned size, Access kind) {
    if (tlb_) tlb_->access(address);
    const std::uint64_t line = address >> line_shift_;
    const bool straddles = (address + size - 1) >> line_shift_ != line;
    ++counters_[0].references[static_cast<std::size_t>(kind)];
    if (straddles || !at(0, kind).touch(line, writes(kind))) missed(line, straddles, kind);
  }

  /// Writes a line back from all levels in which it is dirty; removes it from all if `evict`.
  void flush(std::uint64_t address, bool evict);

  const LevelCounters& counters(std::size_t level) const { return counters_[level]; }
  std::size_t levels() const { return levels_.size(); }
  unsigned line_bytes() const { return 1u << line_shift_; }

  /// From now on, accesses are first looked up in this TLB.
  void set_tlb(Tlb tlb) { tlb_.emplace(std::move(tlb)); }
  const Tlb* tlb() const { return tlb_ ? &*tlb_ : nullptr; }

  void set_prefetcher(std::size_t level, std::unique_ptr<Prefetcher> prefetcher) {
    prefetchers_[level] = std::move(prefetcher);
  }

  /// From now on, appends the traffic below the last level to `out`, which the caller empties;
  /// nullptr ends this.
  void record_traffic(std::vector<Traffic>* out) { traffic_ = out; }

private:
  Hierarchy(std::vector<Cache> levels, std::optional<Cache> instructions);

  Cache& at(std::size_t level, Access kind) {
    return level == 0 && kind == Access::fetch && instructions_ ? *instructions_ : levels_[level];
  }
  void missed(std::uint64_t line, bool straddles, Access kind);
  void put(Cache& cache, std::size_t level, std::uint64_t line, bool write);
  void write_back(std::uint64_t line, std::size_t from_level);
  void prefetch(std::uint64_t line, std::size_t level);
  void bring_in(std::uint64_t line, std::size_t level);
  bool arrives(std::uint64_t line, std::size_t level, bool write);
  void emit(std::uint64_t line, bool write) {
    if (traffic_) traffic_->push_back({line, write});
  }

  std::vector<Cache> levels_;
  std::optional<Cache> instructions_;
  std::optional<Tlb> tlb_;
  std::vector<LevelCounters> counters_;
  std::vector<std::unique_ptr<Prefetcher>> prefetchers_;
  std::vector<std::uint64_t> wanted_;
  std::vector<Traffic>* traffic_ = nullptr;
  unsigned line_shift_;
};

} // namespace nearfar::cache
