// Allocates runs of spans in one tier: slabs and large blocks consist of them.
//
// Free runs are kept in bins by length, eight per doubling, and coalesced with free neighbors. A
// new run is taken from the first runs of its own bin, else from the first nonempty bin whose runs
// all fit, else at the frontier, else from any run that fits. All spans from the frontier on are
// free. Metadata is in the span table and in bitmaps: nothing is stored in the tier.
//
// Metadata and anonymous memory become writable when the frontier reaches them, because RLIMIT_DATA
// limits what is writable.
//
// Thread safety  any thread; one lock per tier. System calls under it: those of open(), close(),
//                commit() and make_writable(), and of the guards of large blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "alloc/recent_spans.hpp"
#include "alloc/tier_options.hpp"
#include "alloc/window.hpp"
#include "os/library_descriptor.hpp"
#include "os/lock.hpp"

namespace nearfar::alloc {

inline constexpr std::uint32_t no_span = UINT32_MAX;

/// The memory behind a tier, and how spans of it are made available.
struct TierBacking {
  os::LibraryDescriptor file; ///< of a tier in a file or device; the program may close it
  std::size_t file_bytes = 0; ///< mapped of the file or device, from the tier's first span
  bool anonymous = true;
  bool sync = false;      ///< mapped with MAP_SYNC
  bool by_chunk = false;  ///< commit() makes spans available
  bool mapped = false;    ///< the tier's part of the window is mapped as a whole
  bool known_zero = true; ///< spans that were never written, or were discarded, are zero
  TierOptions options;
};

class RunAllocator {
public:
  constexpr RunAllocator() = default;
  RunAllocator(const RunAllocator&) = delete;
  RunAllocator& operator=(const RunAllocator&) = delete;

  /// Sets the window, which does not change afterwards. Before open().
  void attach(Window& window) { window_ = &window; }
  /// Starts with spans `first` to `first + limit` free, in backing(). Returns false if the system
  /// has no memory for the metadata.
  bool open(std::uint32_t first, std::uint32_t limit);
  /// Frees the metadata and resets backing(), which the caller has unmapped.
  void close();

  /// Allocates `spans` whose address is a multiple of `align_spans` (a power of two). Returns
  /// no_span with errno set if the tier is full. `dirty` is set if they may have been written.
  std::uint32_t allocate(std::uint32_t spans, std::uint32_t align_spans, bool& dirty);
  /// Frees spans last used in tick `tick`.
  void free(std::uint32_t first, std::uint32_t spans, std::uint8_t tick);
  /// Frees spans that were not used for a whole tick: the next purge() returns them.
  void free_unused(std::uint32_t first, std::uint32_t spans);

  /// Extends a run in place. Returns false if the spans behind it are in use.
  bool extend(std::uint32_t first, std::uint32_t spans, std::uint32_t more);

  /// Returns free spans to the system: those freed before the last tick, or all. Returns their
  /// bytes. The lock is held for one bin at a time. Called by one thread at a time.
  std::size_t purge(std::uint8_t tick, bool all);

  /// The following without the lock: exact while no thread allocates or frees.
  std::uint32_t used_spans() const NEARFAR_NO_THREAD_SAFETY_ANALYSIS { return frontier_ - first_; }
  std::uint32_t highest_frontier() const NEARFAR_NO_THREAD_SAFETY_ANALYSIS { return highest_; }
  std::uint32_t first_span() const { return first_; }
  std::uint32_t writable_spans() const NEARFAR_NO_THREAD_SAFETY_ANALYSIS {
    return writable_ - first_;
  }
  std::uint32_t limit_spans() const NEARFAR_NO_THREAD_SAFETY_ANALYSIS { return limit_; }
  /// Whether a span may have been written since the system provided it.
  bool may_be_written(std::uint32_t at) const NEARFAR_NO_THREAD_SAFETY_ANALYSIS {
    return bit_is_set(dirty_, at);
  }

  /// Address space used so far.
  std::uint64_t span_bytes_used() {
    const os::LockGuard guard(lock_);
    return std::uint64_t{frontier_ - first_} << span_shift;
  }
  std::uint64_t free_dirty_spans() const { return dirty_free_.load(std::memory_order_relaxed); }

  Window& window() const { return *window_; }
  /// Of a tier that was opened or is being opened. Written while it is opened or closed, and in the
  /// child of a fork. Afterwards known_zero and options change under the lock.
  TierBacking& backing() { return *backing_; }
  const TierBacking& backing() const { return *backing_; }
  os::Lock& lock() NEARFAR_RETURNS_LOCK(lock_) { return lock_; }

  /// The options of a tier in use.
  TierOptions options() {
    const os::LockGuard guard(lock_);
    return backing_->options;
  }
  /// The part of them by which the program's own mappings are placed.
  NodePolicy node_policy() {
    const os::LockGuard guard(lock_);
    return backing_->options;
  }
  /// New options of a tier in use; `spans` can only lower the limit.
  void apply(const TierOptions& options, std::uint32_t spans) {
    const os::LockGuard guard(lock_);
    backing_->options = options;
    if (spans < limit_) limit_ = spans;
  }
  /// Discarded pages may keep their contents (mlock), so hm_calloc() must clear memory.
  void clear_known_zero() {
    const os::LockGuard guard(lock_);
    backing_->known_zero = false;
  }
  /// Memory committed from now on has this policy. Returns the previous options.
  TierOptions set_policy(os::Policy policy, unsigned long nodes) {
    const os::LockGuard guard(lock_);
    const TierOptions before = backing_->options;
    backing_->options.policy = policy;
    backing_->options.nodes = nodes;
    backing_->options.has_weights = false;
    return before;
  }
  void restore_policy(const TierOptions& before) {
    const os::LockGuard guard(lock_);
    backing_->options.policy = before.policy;
    backing_->options.nodes = before.nodes;
    backing_->options.has_weights = before.has_weights;
  }

private:
  static constexpr unsigned bin_count = 16 + 8 * 26;
  static constexpr unsigned bin_words = (bin_count + 63) / 64;

  static unsigned bin_of(std::uint32_t spans);
  static unsigned bin_that_fits(std::uint32_t spans);

  std::size_t bitmap_bytes() const { return (window_->spans_per_tier() * tier_count / 64 + 1) * 8; }
  Span& span(std::uint32_t index) const { return window_->spans[index]; }
  std::uint32_t length_of(std::uint32_t run) const;
  std::uint32_t next_of(std::uint32_t run) const;
  std::uint32_t previous_of(std::uint32_t run) const;
  void set_links(std::uint32_t run, std::uint32_t next, std::uint32_t previous) const;
  std::uint64_t align_up(std::uint32_t at, std::uint32_t align_spans) const;

  std::uint32_t find_run(std::uint32_t spans) const NEARFAR_REQUIRES(lock_);
  std::uint32_t find_run_exhaustively(std::uint32_t spans, std::uint32_t align_spans) const
      NEARFAR_REQUIRES(lock_);
  std::uint32_t allocate_address(std::uint32_t spans, std::uint32_t align_spans)
      NEARFAR_REQUIRES(lock_);
  std::uint32_t allocate_at_frontier(std::uint32_t spans, std::uint32_t align_spans)
      NEARFAR_REQUIRES(lock_);
  void insert(std::uint32_t first, std::uint32_t spans) NEARFAR_REQUIRES(lock_);
  void remove(std::uint32_t first) NEARFAR_REQUIRES(lock_);
  void coalesce_and_insert(std::uint32_t first, std::uint32_t spans) NEARFAR_REQUIRES(lock_);
  void insert_remainders(std::uint32_t run, std::uint32_t length, std::uint32_t first,
                         std::uint32_t spans) NEARFAR_REQUIRES(lock_);
  int make_writable(std::uint32_t end) NEARFAR_REQUIRES(lock_);
  int make_writable_until(std::uint32_t end) NEARFAR_REQUIRES(lock_);
  int commit(std::uint32_t first, std::uint32_t spans) NEARFAR_REQUIRES(lock_);
  int commit_range(std::uint32_t first, std::uint32_t spans) NEARFAR_REQUIRES(lock_);
  std::uint32_t count_dirty(std::uint32_t first, std::uint32_t spans) const NEARFAR_REQUIRES(lock_);
  std::uint32_t clear_dirty(std::uint32_t first, std::uint32_t spans) NEARFAR_REQUIRES(lock_);

  std::uint32_t find_purgeable(std::uint32_t& at, std::uint32_t end, bool all) const
      NEARFAR_REQUIRES(lock_);
  std::uint32_t detach_purgeable(unsigned bin, bool all);
  std::uint32_t detach_purgeable_tail(bool all, std::uint32_t& first);
  std::size_t purge_run(std::uint32_t run, std::uint32_t spans, bool all);
  bool discard_to_zero(std::uint32_t first, std::uint32_t spans) const;

  os::Lock lock_ NEARFAR_LOCK_LEVEL(runs);
  Window* window_ = nullptr;
  std::optional<TierBacking> backing_;
  std::uint32_t first_ = 0;
  std::uint32_t frontier_ NEARFAR_GUARDED_BY(lock_) = 0;
  std::uint32_t highest_ NEARFAR_GUARDED_BY(lock_) = 0;  ///< maximum of the frontier so far
  std::uint32_t writable_ NEARFAR_GUARDED_BY(lock_) = 0; ///< the first span that is not
  std::uint32_t limit_ NEARFAR_GUARDED_BY(lock_) = 0;
  std::uint64_t* dirty_ NEARFAR_GUARDED_BY(lock_) = nullptr;     ///< one bit per span
  std::uint64_t* committed_ NEARFAR_GUARDED_BY(lock_) = nullptr; ///< the same; if by_chunk
  std::atomic<std::uint64_t> dirty_free_{0};                     ///< dirty spans in free runs
  RecentSpans recent_ NEARFAR_GUARDED_BY(lock_);
  std::uint64_t nonempty_bins_[bin_words] NEARFAR_GUARDED_BY(lock_) = {};
  /// First span of the first run, 0 if the bin is empty (span 0 is never used).
  std::uint32_t heads_[bin_count] NEARFAR_GUARDED_BY(lock_) = {};
};

} // namespace nearfar::alloc
