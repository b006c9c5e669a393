// Runs of spans: what slabs and large blocks of one tier are made of.
//
// Free runs are kept by length in bins, eight to a doubling, and joined with their free neighbours;
// a new run is the first of the smallest bin that surely fits, or is taken from the frontier,
// behind which nothing was ever used. All of it is in the span table: nothing is stored in the
// tier.
//
// Thread safety  any thread; one lock a tier, never held during a system call but commit().
#pragma once

#include <cstddef>
#include <cstdint>

#include "alloc/options.hpp"
#include "alloc/recent_spans.hpp"
#include "alloc/window.hpp"
#include "os/library_descriptor.hpp"
#include "os/lock.hpp"

namespace nearfar::alloc {

inline constexpr std::uint32_t no_span = UINT32_MAX;

/// What lies behind a tier, and how memory is made available before it is handed out.
struct Medium {
  os::LibraryDescriptor file;   ///< of a tier in a file or device; the program may close it
  std::size_t mapped_bytes = 0; ///< of the file or device, from the tier's first span
  bool anonymous = true;
  bool sync = false;      ///< MAP_SYNC
  bool by_chunk = false;  ///< spans are made sure of by commit()
  bool mapped = false;    ///< the window is mapped as a whole
  bool known_zero = true; ///< what was never written, or discarded, reads as zero
  Options options;
};

class Runs {
public:
  /// Spans `first` to `first + limit` are used; all is as if nothing had been taken before. False
  /// if the system has no memory for the bookkeeping.
  bool open(std::uint32_t first, std::uint32_t limit, const Medium& medium);
  /// Gives the bookkeeping back. Nothing may be taken until open().
  void close();

  /// Takes `spans` at a multiple of `align_spans` (a power of two; addresses count). no_span if the
  /// tier is full, with errno set. `dirty` tells whether something may have been written there
  /// before.
  std::uint32_t take(std::uint32_t spans, std::uint32_t align_spans, bool& dirty);
  /// Gives spans back that were in use up to this tick of the decay.
  void give_back(std::uint32_t first, std::uint32_t spans, std::uint8_t tick);
  /// The same of spans that have not been used for a whole tick: the next purge() takes them.
  void give_back_unused(std::uint32_t first, std::uint32_t spans);

  /// Grows a run in place. False if what follows is in use.
  bool extend(std::uint32_t first, std::uint32_t spans, std::uint32_t more);

  /// Returns free spans to the system that were freed before the last tick, or all. Returns bytes.
  /// The lock is held for a walk over one bin at a time. One thread at a time.
  std::size_t purge(std::uint8_t tick, bool all);

  std::uint32_t used_spans() const { return frontier_ - first_; }
  /// Address space used so far; for accounts.
  std::uint64_t span_bytes_used() {
    const os::LockGuard guard(lock_);
    return std::uint64_t{used_spans()} << span_shift;
  }
  std::uint32_t highest_span() const { return highest_; }
  std::uint32_t first_span() const { return first_; }
  std::uint32_t limit_spans() const { return limit_; }
  std::uint64_t free_dirty_spans() const { return dirty_free_.load(std::memory_order_relaxed); }
  void set_limit(std::uint32_t spans) { limit_ = spans < limit_ ? spans : limit_; }
  Medium& medium() { return medium_; }
  os::Lock& lock() { return lock_; }
  /// Whether a span may have been written since the system gave it.
  bool any_written(std::uint32_t at) const { return (dirty_[at / 64] >> (at % 64) & 1) != 0; }
  /// The system does not take memory back (pages locked by mlock): hm_calloc() has to clear it.
  void forget_zeros() {
    const os::LockGuard guard(lock_);
    medium_.known_zero = false;
  }
  /// Memory taken from now on lies on these nodes. Returns the options until now.
  Options bind(os::Policy policy, unsigned long nodes) {
    const os::LockGuard guard(lock_);
    const Options before = medium_.options;
    medium_.options.policy = policy;
    medium_.options.nodes = nodes;
    return before;
  }

private:
  static constexpr unsigned bin_count = 16 + 8 * 26;
  static constexpr unsigned bin_words = (bin_count + 63) / 64;

  static unsigned bin_of(std::uint32_t spans);
  static unsigned bin_that_fits(std::uint32_t spans);
  std::uint32_t find(std::uint32_t spans);
  std::uint32_t find_exact(std::uint32_t spans, std::uint32_t align_spans) const;
  std::uint32_t take_place(std::uint32_t spans, std::uint32_t align_spans);
  std::uint32_t take_from_frontier(std::uint32_t spans, std::uint32_t align_spans);
  void insert(std::uint32_t first, std::uint32_t spans);
  void remove(std::uint32_t first);
  void join_and_insert(std::uint32_t first, std::uint32_t spans);
  std::uint32_t find_old(std::uint32_t& at, std::uint32_t end, bool all) const;
  void trim(std::uint32_t got, std::uint32_t length, std::uint32_t wanted, std::uint32_t spans);
  int commit(std::uint32_t first, std::uint32_t spans);
  int commit_range(std::uint32_t first, std::uint32_t spans);
  void mark_dirty(std::uint32_t first, std::uint32_t spans);
  std::uint32_t clear_dirty(std::uint32_t first, std::uint32_t spans);
  std::uint32_t count_dirty(std::uint32_t first, std::uint32_t spans) const;
  /// Whether the pages were given up: they are zero when touched again.
  bool discard(std::uint32_t first, std::uint32_t spans);
  std::uint32_t take_old(unsigned bin, bool all);
  std::uint32_t take_old_tail(bool all, std::uint32_t& first);
  std::size_t purge_run(std::uint32_t run, std::uint32_t spans, bool all);

  os::Lock lock_;
  Medium medium_;
  std::uint32_t first_ = 0;
  std::uint32_t frontier_ = 0;
  std::uint32_t highest_ = 0; ///< the frontier never was behind this
  std::uint32_t limit_ = 0;
  std::uint64_t* dirty_ = nullptr;           ///< a bit a span
  std::uint64_t* committed_ = nullptr;       ///< a bit a span, where medium_.by_chunk
  std::atomic<std::uint64_t> dirty_free_{0}; ///< dirty spans in free runs
  RecentSpans recent_;
  std::uint64_t nonempty_[bin_words] = {};
  /// First span of the first run, 0 for none (span 0 is never used).
  std::uint32_t heads_[bin_count] = {};
};

} // namespace nearfar::alloc
