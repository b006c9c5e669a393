// An allocator: an address window with up to eight tiers, and all that belongs to them. The C
// interface and the preloaded malloc() use process_allocator; tests open others.
//
// To allocate a small block: class_of(), pop from the thread's BlockStack, mark the block live. To
// free it: look up its span, then its slab and state, push on the BlockStack. An empty stack is
// refilled to half from its SlabClass; a full one returns its older half, or the blocks of slabs
// that the thread does not own. Slabs and large blocks consist of runs of spans.
//
// Errors         nullptr with errno ENOMEM, ENODEV or EINVAL; last_error() returns the message.
// Thread safety  any thread, once open.
// Lock order     lock_order.hpp.
#pragma once

#include <cerrno>
#include <cstddef>

#include "alloc/arenas.hpp"
#include "alloc/decay.hpp"
#include "alloc/lock_order.hpp"
#include "alloc/placed_mappings.hpp"
#include "alloc/plan.hpp"
#include "alloc/quarantine.hpp"
#include "alloc/settings.hpp"
#include "alloc/thread_cache.hpp"
#include "alloc/tier_heap.hpp"
#include "alloc/variables.hpp"
#include "os/lock.hpp"

namespace nearfar::alloc {

class Allocator {
public:
  /// Zero until it is opened: a process has only those pages of process_allocator that it uses.
  constexpr Allocator() = default;
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// Opens the window and the near tier, once, without calling functions that may allocate. Returns
  /// false if the process has no address space for it.
  bool open();
  /// Unmaps all tiers and the window, which must be reserved. All blocks become invalid. Not for
  /// process_allocator. No other thread uses the allocator.
  void close();

  /// Opens a tier. Errors as of hm_tier_create().
  Result<int> create_tier(const char* name, const char* specification);
  /// The tier of that name, -1 if there is none.
  int find_tier(const char* name) const;
  /// Applies `overflow=spill:TIER` to tiers that were created before all tiers were known. During
  /// configure() only.
  Status resolve_spill_targets();

  void* allocate(unsigned tier, std::size_t size);
  /// The same in the default tier of malloc().
  void* allocate_in_default(std::size_t size);
  /// The same for small blocks, from the calling thread's stack. Returns nullptr if it has none, or
  /// if the allocator follows a plan.
  void* allocate_cached_in_default(std::size_t size);
  void* allocate_zeroed(unsigned tier, std::size_t count, std::size_t size);
  /// `alignment` is a power of two.
  void* allocate_aligned(unsigned tier, std::size_t alignment, std::size_t size);
  /// Resizes a live block and moves it to `tier`.
  void* reallocate(unsigned tier, void* ptr, std::size_t size);
  /// Allocates in an arena. `alignment` is a power of two; `zeroed` is set if the block is known to
  /// be zero.
  void* allocate_in_arena(Arena& arena, std::size_t alignment, std::size_t size,
                          bool* zeroed = nullptr);
  void* reallocate_in_arena(Arena& arena, void* ptr, std::size_t size);
  /// The arena of a live block, nullptr if it is not in one.
  Arena* arena_of(const void* ptr) const {
    const std::uint8_t number = window.span_of(ptr).arena();
    return number == 0 ? nullptr : &arenas.numbered(number);
  }
  /// Frees a live block. Aborts the process for any other address.
  void release(void* ptr);
  /// Aborts the process if a block with a canary was not allocated with this size. Ignores others.
  void check_size(const void* ptr, std::size_t size) const;
  /// Bytes of a live block. Aborts the process for any other address, and names `call`.
  std::size_t usable_size(const void* ptr, const char* call) const;

  /// Bytes of the block of this size and default alignment, its canary included.
  std::size_t block_bytes_of(std::size_t size) const;
  /// The usable bytes of such a block.
  std::size_t good_size(std::size_t size) const;

  /// The budget that a block is charged to: 1 + its number, 0 for none.
  void set_budget(void* block, int budget);

  /// Returns decayed memory of all tiers to the system. Does nothing if purge_lock is
  /// held. Preserves errno.
  void return_old_memory();
  /// Returns all free memory of a tier to the system, including the calling thread's stacks.
  /// Returns the number of bytes.
  std::size_t trim(unsigned tier);

  /// The calling thread's cache.
  ThreadCache& thread_cache() const;
  /// Creates the calling thread's cache, unless the thread is exiting or memory is exhausted, and
  /// its stacks for a tier that is ready.
  void open_stacks(unsigned tier);
  /// Frees the blocks in the calling thread's stacks. The thread caches no blocks from then on.
  void drop_stacks();
  /// Frees the blocks in a cache's stacks for a tier; keeps the newest `keep_bytes` of each class.
  void flush_stacks(ThreadCache& cache, unsigned tier, std::size_t keep_bytes = 0);
  /// Frees all blocks in a cache's stacks; afterwards the cache owns no slabs.
  void empty_cache(ThreadCache& cache);
  /// Sets home_stacks, unplanned_stacks and fast_owner of the calling thread by the settings.
  void choose_home() const;
  void cool_idle_caches(bool all);
  /// Frees the cache of a thread that exits.
  void close_thread_cache(ThreadCache* cache);

  /// Whether a span is in a tier that was removed in this child of a fork.
  bool is_removed(std::uint32_t span) const {
    const unsigned bits = window.shift - span_shift;
    return (span & ((1u << bits) - 1)) < tiers[span >> bits].removed_spans();
  }

  Window window;
  Settings settings;
  Plan plan;
  TierHeap tiers[tier_count];
  Decay decay;
  ThreadCaches caches;
  Arenas arenas;
  PlacedVariables variables;
  PlacedMappings mappings;
  os::Lock configuration_lock NEARFAR_LOCK_LEVEL(configuration);
  os::Lock tiers_lock NEARFAR_LOCK_LEVEL(tiers);

private:
  void* allocate_slowly(unsigned tier, std::size_t size, bool* zeroed);
  void* allocate_in_default_slowly(std::size_t size);
  void* with_canary(BlockRef ref, std::size_t size) const;
  SlabSource slabs_of(TierHeap& tier) const { return {tier.runs, settings.canary, settings.guard}; }
  void* allocate_in(unsigned tier, std::size_t size, bool* zeroed);
  void* allocate_large(unsigned tier, std::size_t size, std::uint32_t align_spans, bool* zeroed,
                       Arena* arena = nullptr);
  void* allocate_uncached(unsigned tier, unsigned size_class, std::size_t size, bool* zeroed);
  void* allocate_from_stack(unsigned tier, unsigned size_class);
  template <class Try>
  void* retry_after_purge(unsigned tier, const Try& try_allocate);
  template <class Try>
  void* try_with_spill(unsigned tier, std::size_t size, const Try& try_allocate);
  void* try_arena(Arena& arena, std::size_t alignment, std::size_t size, bool* zeroed);
  static bool check_alignment(std::size_t alignment);
  bool check_request(unsigned tier, std::size_t size);
  bool make_ready(unsigned tier);
  Result<int> find_spill_target(const char* name, const TierOptions& options) const;
  Result<unsigned> find_free_slot(const char* name) const NEARFAR_REQUIRES(tiers_lock);

  void release_slowly(void* ptr);
  void release_checked(BlockRef ref);
  void check_freed(BlockRef ref) const;
  void check_still_wiped(BlockRef ref) const;
  void wipe_large(void* ptr, std::size_t bytes);
  std::size_t block_bytes(const void* ptr, const char* call) const;
  void release_large(void* ptr, Span& span);
  void release_block(BlockRef ref);
  void release_in_arena(void* ptr, const Span& span);
  std::size_t purge(TierHeap& tier, bool all) NEARFAR_REQUIRES(decay.purge_lock);
  void release_late(void* ptr, const Span& span, TierStacks& stacks);
  void release_cached(void* ptr);
  void make_room(unsigned tier, TierStacks& stacks, unsigned size_class);
  void flush_oldest(unsigned tier, TierStacks& stacks, unsigned size_class, std::uint32_t keep);
  void return_blocks(unsigned tier, TierStacks& stacks, unsigned size_class);
  std::uint16_t fast_owner_of(const TierStacks& stacks) const;
  TierStacks* unplanned(TierStacks* home) const { return settings.has_plan ? &empty_stacks : home; }
  static bool push(TierStacks& stacks, unsigned size_class, std::uint16_t owner, BlockRef ref);
  void quarantine(BlockRef ref, unsigned size_class, BlockStack* stack);
  Quarantine* thread_quarantine();
  void release_quarantined(Quarantine& blocks, Quarantine::Half& half);
  BlockRef live_block(const void* ptr, const Span& span, const char* call) const;
  bool is_large(const void* ptr, const Span& span) const;
  int budget_of(const void* ptr) const;
  bool resize_in_place(void* ptr, std::size_t has, std::size_t size);

  std::uint32_t guard_spans() const { return settings.guard ? 1 : 0; }
};

/// The allocator of the process. Never closed: it serves exit handlers too. The fast paths below
/// are always inlined, so that its address and its thread caches are constants there.
extern Allocator process_allocator;

/// Reads the environment and creates its tiers in process_allocator, once. Invalid values end the
/// process. Meanwhile this thread allocates from the near tier.
void configure();
bool is_configured();
/// Once, for libhmalloc-preload.so: reads NEARFAR_HMALLOC_DEFAULT and NEARFAR_HMALLOC_PLAN. Invalid
/// values end the process.
void configure_preload();

/// The usable bytes of a block allocated with this size and default alignment; `size` itself if no
/// block is so large.
inline std::size_t rounded_size(std::size_t size) {
  if (size <= largest_class_bytes) return class_infos[class_of(size)].bytes;
  const std::size_t rounded = spans_for(size) << span_shift;
  return rounded < size ? size : rounded;
}

/// If try_allocate() fails, returns the blocks in idle caches and empty slabs to the tier's free
/// runs, and tries once more.
template <class Try>
void* Allocator::retry_after_purge(unsigned tier, const Try& try_allocate) {
  void* block = try_allocate();
  if (block != nullptr) return block;
  const os::LockGuard guard(decay.purge_lock);
  cool_idle_caches(true);
  for (SlabClass& c : tiers[tier].classes)
    c.purge(tiers[tier].runs, decay.tick(), true);
  arenas.purge(tiers[tier], decay.tick(), true);
  return try_allocate();
}

[[gnu::always_inline]] inline ThreadCache& Allocator::thread_cache() const {
  return this == &process_allocator ? *this_thread_cache : no_thread_cache;
}

[[gnu::always_inline]] inline void* Allocator::allocate(unsigned tier, std::size_t size) {
  if (size <= largest_cached_bytes && tier < tier_count) [[likely]] {
    void* block = thread_cache().tiers[tier]->stacks[class_of(size)].pop();
    if (block != nullptr) [[likely]]
      return block;
  }
  return allocate_slowly(tier, size, nullptr);
}

[[gnu::always_inline]] inline void* Allocator::allocate_cached_in_default(std::size_t size) {
  if (size > table_bytes) [[unlikely]]
    return nullptr;
  return unplanned_stacks->stacks[class_of(size)].pop();
}

[[gnu::always_inline]] inline void* Allocator::allocate_in_default(std::size_t size) {
  void* block = allocate_cached_in_default(size);
  return block != nullptr ? block : allocate_in_default_slowly(size);
}

[[gnu::always_inline]] inline void Allocator::release(void* ptr) {
  const std::uintptr_t offset = window.offset_of(ptr);
  if (offset >= window.bytes) [[unlikely]]
    return release_slowly(ptr);
  const Span& span = window.spans[offset >> span_shift];
  TierStacks& stacks = this == &process_allocator ? *home_stacks : empty_stacks;
  if (span.owner() != stacks.fast_owner) [[unlikely]]
    return release_late(ptr, span, stacks);
  const std::size_t size_class = span.size_class.load(std::memory_order_relaxed);
  BlockStack& stack = stacks.stacks[size_class];
  AtomicBlockState* state = state_of(span, ptr);
  if (state == nullptr || state->load(std::memory_order_relaxed) != live ||
      !stack.push({static_cast<std::byte*>(ptr), state})) [[unlikely]]
    release_slowly(ptr);
}

} // namespace nearfar::alloc
