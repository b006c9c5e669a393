// Slabs of one size class of one tier, and the state of each block in them.
//
// Each block has one byte of state outside the slab, which detects a double free and a pointer into
// the middle of a block.
//
// A slab may have an owner: a thread's cache, which alone is refilled from it unless the tier is
// full, so that threads do not write to the same cache lines. Ownership affects placement only: any
// thread may free any block.
//
// Invariants     1. An owned slab is in its owner's list: those with free blocks in front.
//                2. A slab without an owner is in the list of its class while it has free blocks.
//                   Slabs without live blocks are at the end, until the decay returns them.
//                3. A slab all of whose blocks are free has no owner.
// Thread safety  any thread; one lock per class. The thread that frees a live block writes its
//                state without the lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "alloc/counter.hpp"
#include "alloc/run_allocator.hpp"

namespace nearfar::alloc {

/// The state of a block, which can be allocated if its state <= free_block.
enum BlockState : std::int8_t {
  zeroed = 0,      ///< free, and zero since the system provided its memory
  free_block = 1,  ///< free, contents unknown
  cached = 2,      ///< free, in the stack of a thread
  live = 3,        ///< allocated
  quarantined = 4, ///< freed, in a quarantine
  purging = 5,     ///< free, its pages are being returned to the system
  budgeted = 8,    ///< and up to 126: allocated, charged to budget number state - 8
  no_block = 127,  ///< past the last block
};
inline bool is_live(std::int8_t state) {
  return state == live || (state >= budgeted && state < no_block);
}
using AtomicBlockState = std::atomic<std::int8_t>;

struct SlabList;

struct Slab {
  Slab* next = nullptr;
  Slab* previous = nullptr;
  SlabList* list = nullptr; ///< that it is in
  std::byte* start = nullptr;
  std::uint64_t reciprocal = 0; ///< of its class
  std::uint32_t first_span = 0;
  std::uint32_t blocks = 0;
  std::uint32_t free = 0;       ///< blocks that can be allocated
  std::uint32_t first_free = 0; ///< no block below this one is free
  std::uint16_t size_class = 0;
  std::uint8_t last_use = 0; ///< tick in which a block was last freed
  bool dirty = false;        ///< has free blocks that were written
  bool detached = false;     ///< in no list while it is purged
  bool canaries = false;     ///< its blocks have canaries
  bool guarded = false;      ///< the spans on both sides are inaccessible
  std::uint8_t purge = 0;    ///< number of the last purge that returned its pages
  AtomicBlockState* states() { return reinterpret_cast<AtomicBlockState*>(this + 1); }
};
static_assert(sizeof(Slab) % 16 == 0);

/// The slabs of an owner in one class, or those of the class without an owner.
struct SlabList {
  Slab* head = nullptr;
  Slab* tail = nullptr;
  SlabList* next = nullptr; ///< list of another owner in the class
  SlabList* previous = nullptr;
  std::uint16_t owner = no_owner;
  bool registered = false; ///< with the class
};

/// The slab of a span of kind `slab`.
inline Slab* slab_of(const Span& span) {
  return reinterpret_cast<Slab*>(span.word.load(std::memory_order_relaxed)) - 1;
}

/// The state of the block at an address in a span of kind `slab`; nullptr if no block begins there.
/// The memory behind the last block has the state no_block.
[[gnu::always_inline]] inline AtomicBlockState* state_of(const Span& span, const void* ptr) {
  __extension__ using Product = unsigned __int128;
  auto* states = reinterpret_cast<AtomicBlockState*>(span.word.load(std::memory_order_relaxed));
  const Slab* slab = reinterpret_cast<const Slab*>(states) - 1;
  const auto inside = static_cast<std::uint64_t>(static_cast<const std::byte*>(ptr) - slab->start);
  const Product product = Product{inside} * slab->reciprocal;
  // For a multiple of the block size, the fraction is less than the reciprocal (Lemire, Kaser, Kurz
  // 2019).
  if (static_cast<std::uint64_t>(product) >= slab->reciprocal) [[unlikely]]
    return nullptr;
  return states + static_cast<std::uint64_t>(product >> 64);
}

/// A block with its state.
struct BlockRef {
  std::byte* block;
  AtomicBlockState* state;
};

/// A limit of spans that an arena may have at a time.
class SpanLimit {
public:
  void reset(std::uint64_t most) {
    used_.store(0, std::memory_order_relaxed);
    most_ = most;
  }
  /// Returns false, and takes none, if the limit would be exceeded.
  bool take(std::uint64_t spans) {
    if (used_.fetch_add(spans, std::memory_order_relaxed) + spans <= most_) return true;
    give_back(spans);
    return false;
  }
  void give_back(std::uint64_t spans) { used_.fetch_sub(spans, std::memory_order_relaxed); }
  std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  std::uint64_t most() const { return most_; }

private:
  std::atomic<std::uint64_t> used_{0};
  std::uint64_t most_ = 0;
};

/// Source of slabs: the runs of a tier, for the tier itself or for an arena in it.
struct SlabSource {
  RunAllocator& runs;
  SpanLimit* limit = nullptr; ///< of the arena
  std::uint8_t arena = 0;     ///< 1 + its number, or 0
  bool canaries = false;      ///< of blocks in new slabs
  bool guards = false;        ///< around new slabs

  SlabSource(RunAllocator& of_tier, bool canary = false, bool guard = false)
      : runs(of_tier), canaries(canary), guards(guard) {}
  SlabSource(RunAllocator& of_tier, SpanLimit& of_arena, std::uint8_t number)
      : runs(of_tier), limit(&of_arena), arena(number) {}

  /// Returns no_span with errno set if the tier or the arena is full. `guarded`: see Slab.
  std::uint32_t allocate(std::uint32_t spans, bool& dirty, bool& guarded) const;
  void free_unused(std::uint32_t first, std::uint32_t spans, bool guarded) const;
};

class SlabClass {
public:
  /// Allocates up to `wanted` blocks, lowest address last, with the state `state`. Returns their
  /// number, 0 if the tier is full. `all_zeroed` is set if they are known to be zero. With `owned`,
  /// blocks come from slabs of its owner unless the tier is full.
  std::uint32_t allocate(const SlabSource& source, unsigned size_class, BlockRef* blocks,
                         std::uint32_t wanted, BlockState state, bool& all_zeroed,
                         SlabList* owned = nullptr);
  /// Returns blocks that are in no thread's stack. `owned`: slabs of the calling thread's cache. A
  /// slab of another cache has no owner once half of its blocks are free.
  void free(const Window& window, const BlockRef* blocks, std::uint32_t count, std::uint8_t now,
            const SlabList* owned = nullptr);
  /// The same for a block that does not come from a thread's stack.
  void free_uncached(const Window& window, BlockRef block, std::uint8_t now);
  /// Takes all slabs of a list from their owner.
  void disown(const Window& window, SlabList& owned);

  /// Returns slabs without live blocks to the source, and free pages of other slabs to the system;
  /// if not `all`, only those that are old_enough(). Returns bytes of pages returned to the system.
  std::size_t purge(const SlabSource& source, std::uint8_t now, bool all);
  /// Whether purge() would have anything to return, now or later.
  bool has_dirty() const { return dirty_.load(std::memory_order_relaxed); }

  /// Bytes in blocks that are free here.
  std::uint64_t free_bytes(unsigned size_class) const {
    return free_blocks_.get() * class_infos[size_class].bytes;
  }
  Counter allocations; ///< blocks allocated without a thread's stack
  Counter frees;
  /// Forgets all slabs: their memory is gone. Does not change the lock, which an interrupted call
  /// may hold.
  void reset() NEARFAR_NO_THREAD_SAFETY_ANALYSIS;
  os::Lock& lock() NEARFAR_RETURNS_LOCK(lock_) { return lock_; }

private:
  Slab* add_slab(const SlabSource& source, unsigned size_class) NEARFAR_REQUIRES(lock_);
  std::uint32_t allocate_from(Slab* slab, BlockRef* blocks, std::uint32_t wanted, BlockState state,
                              bool& all_zeroed) NEARFAR_REQUIRES(lock_);
  Slab* next_slab(const SlabSource& source, unsigned size_class, SlabList* owned, bool may_add)
      NEARFAR_REQUIRES(lock_);
  void free_locked(const Window& window, const BlockRef* blocks, std::uint32_t count,
                   std::uint8_t now, const SlabList* owned) NEARFAR_REQUIRES(lock_);
  Slab* any_with_free() NEARFAR_REQUIRES(lock_);
  void own(const Window& window, Slab* slab, SlabList& owned) NEARFAR_REQUIRES(lock_);
  void list_freed(const Window& window, Slab* slab, std::uint32_t before, const SlabList* owned)
      NEARFAR_REQUIRES(lock_);
  void list_unowned(Slab* slab) NEARFAR_REQUIRES(lock_);
  Slab* detach_empty(const Window& window, std::uint8_t now, bool all);
  void release_empty(const SlabSource& source, std::uint8_t now, bool all);
  Slab* detach_partial(const Window& window, std::uint8_t now, bool all);
  std::size_t purge_detached(RunAllocator& runs, Slab* slab);

  os::Lock lock_ NEARFAR_LOCK_LEVEL(slabs);
  std::atomic<bool> dirty_{false};
  SlabList unowned_ NEARFAR_GUARDED_BY(lock_);
  SlabList* owners_ NEARFAR_GUARDED_BY(lock_) = nullptr; ///< lists of owners
  std::uint8_t purges_ NEARFAR_GUARDED_BY(lock_) = 0;    ///< number of the current purge
  Counter free_blocks_;
};

/// Frees the metadata of a slab.
void free_slab(Slab* slab);
/// Marks the spans of a slab as not covered.
void forget_spans(const Window& window, const Slab* slab);

/// Frees the metadata of all slabs in spans [first, end): their memory is gone.
void free_slab_metadata(const Window& window, std::uint32_t first, std::uint32_t end);

} // namespace nearfar::alloc
