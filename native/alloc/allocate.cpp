// Allocation outside the fast path: first calls, empty stacks, large sizes, full tiers.
#include <bit>
#include <cstring>

#include "alloc/allocator.hpp"
#include "alloc/canary.hpp"
#include "alloc/diagnostics.hpp"

namespace nearfar::alloc {

namespace {

constexpr std::size_t largest_request = std::size_t{1} << 46;

} // namespace

/// In an arena of the tier, if one is given.
void* Allocator::allocate_large(unsigned tier, std::size_t size, std::uint32_t align_spans,
                                bool* zeroed, Arena* arena) {
  const std::size_t spans = spans_for(size == 0 ? 1 : size) + guard_spans();
  if (spans >= window.spans_per_tier()) {
    errno = ENOMEM;
    return nullptr;
  }
  bool dirty = true;
  const auto count = static_cast<std::uint32_t>(spans);
  std::byte* block = arena != nullptr ? arena->allocate_large(count, align_spans, dirty)
                                      : tiers[tier].allocate_large(count, align_spans, dirty);
  if (block == nullptr) return nullptr;
  if (zeroed != nullptr) *zeroed = !dirty;
  if (settings.guard) { // not while another thread forks and copies the tier
    const os::LockGuard lock(tiers[tier].runs.lock());
    window.close_guard(window.span_index(block));
  }
  return block;
}

void* Allocator::with_canary(BlockRef ref, std::size_t size) const {
  const Slab* slab = slab_of(window.span_of(ref.block));
  if (slab->canaries) write_canary(ref.block, class_infos[slab->size_class].bytes, size);
  return ref.block;
}

/// Allocates one block from its class: for threads without stacks and for uncached classes.
void* Allocator::allocate_uncached(unsigned tier, unsigned size_class, std::size_t size,
                                   bool* zeroed) {
  BlockRef ref{};
  bool all_zeroed = false;
  TierHeap& heap = tiers[tier];
  if (heap.classes[size_class].allocate(slabs_of(heap), size_class, &ref, 1, live, all_zeroed) == 0)
    return nullptr;
  if (zeroed != nullptr) *zeroed = all_zeroed;
  return with_canary(ref, size);
}

/// Pops a block. An empty stack is refilled from its class first. Returns nullptr if the thread has
/// no stacks for the tier or the tier is full.
void* Allocator::allocate_from_stack(unsigned tier, unsigned size_class) {
  TierStacks& stacks = *thread_cache().tiers[tier];
  if (!stacks.caches) return nullptr;
  BlockStack& stack = stacks.stacks[size_class];
  // The fast path has tried the stack of the requested tier only, not of one that it spills to.
  if (void* block = stack.pop(); block != nullptr) return block;
  if (stack.to_return() > stack.capacity() / 2) return_blocks(tier, stacks, size_class);
  if (stack.to_return() == 0) stack.grow(size_class);
  TierHeap& heap = tiers[tier];
  bool all_zeroed = false;
  const std::uint32_t got = heap.classes[size_class].allocate(
      slabs_of(heap), size_class, stack.blocks(), stack.capacity() / 2, cached, all_zeroed,
      &stacks.owned[size_class]);
  if (got == 0) return nullptr;
  stack.add(got);
  return stack.pop();
}

/// In this tier only. Returns nullptr if it is full.
void* Allocator::allocate_in(unsigned tier, std::size_t size, bool* zeroed) {
  const std::size_t bytes = settings.canary ? size + canary_bytes : size; // no overflow: checked
  if (bytes > largest_class_bytes) return allocate_large(tier, size, 1, zeroed);
  const unsigned size_class = class_of(bytes);
  void* block = nullptr;
  if (size_class < cached_classes) {
    open_stacks(tier);
    block = allocate_from_stack(tier, size_class);
  }
  if (block == nullptr) block = allocate_uncached(tier, size_class, size, zeroed);
  // A tier without space for a slab may have space for one block in a run of its own.
  if (block == nullptr) block = allocate_large(tier, size, 1, zeroed);
  return block;
}

/// Calls try_allocate(tier) for a tier, then for those that it spills to.
template <class Try>
void* Allocator::try_with_spill(unsigned tier, std::size_t size, const Try& try_allocate) {
  const unsigned requested = tier;
  for (unsigned tries = 0; tries < tier_count; ++tries) {
    if (void* block = try_allocate(tier); block != nullptr) {
      if (tier != requested) tiers[requested].spilled.add(1);
      return block;
    }
    const int next = tiers[tier].spill_to();
    if (next < 0 || !tiers[next].ready()) break;
    tier = static_cast<unsigned>(next);
  }
  tiers[requested].failed.add(1);
  set_error(ENOMEM, "tier %s has no room for %zu bytes (%s): raise its capacity=, or add overflow=",
            tiers[requested].name(), size, std::strerror(errno));
  return nullptr;
}

/// Opens the near tier, then the configured ones. Returns whether the tier is ready.
bool Allocator::make_ready(unsigned tier) {
  if (tiers[tier].ready()) return true;
  if (!open()) {
    set_no_window();
    return false;
  }
  if (this == &process_allocator && !tiers[tier].ready()) configure();
  if (tiers[tier].ready()) return true;
  if (tiers[tier].absent())
    set_error(ENODEV,
              tier == 1 ? "tier far is not configured: set NEARFAR_HMALLOC_FAR, for example numa:1 "
                          "or file:/mnt, or call hm_tier_create"
                        : "tier %d is not configured: call hm_tier_create",
              static_cast<int>(tier));
  return false;
}

bool Allocator::check_request(unsigned tier, std::size_t size) {
  if (size > largest_request) {
    set_error(ENOMEM, "%zu bytes are more than any tier can span", size);
    return false;
  }
  if (tier >= tier_count) {
    set_invalid_tier(static_cast<int>(tier));
    return false;
  }
  return make_ready(tier);
}

void* Allocator::allocate_slowly(unsigned tier, std::size_t size, bool* zeroed) {
  const int saved_errno = errno;
  if (!check_request(tier, size)) return nullptr;
  const bool decay_due = decay.advance();
  void* block = try_with_spill(tier, size, [&](unsigned t) {
    return retry_after_purge(t, [&] { return allocate_in(t, size, zeroed); });
  });
  if (block != nullptr) errno = saved_errno;
  if (decay_due) return_old_memory();
  return block;
}

void* Allocator::allocate_in_default_slowly(std::size_t size) {
  return allocate(static_cast<unsigned>(settings.default_tier), size);
}

void* Allocator::allocate_zeroed(unsigned tier, std::size_t count, std::size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    set_error(ENOMEM, "%zu times %zu bytes overflow", count, size);
    return nullptr;
  }
  if (bytes <= largest_cached_bytes) {
    void* block = allocate(tier, bytes);
    return block == nullptr ? nullptr : std::memset(block, 0, bytes);
  }
  bool zeroed = false;
  void* block = allocate_slowly(tier, bytes, &zeroed);
  if (block != nullptr && !zeroed) std::memset(block, 0, bytes);
  return block;
}

bool Allocator::check_alignment(std::size_t alignment) {
  if (!std::has_single_bit(alignment)) {
    set_error(EINVAL, "invalid alignment %zu: must be a power of two", alignment);
    return false;
  }
  if (alignment > largest_request) {
    set_error(ENOMEM, "invalid alignment %zu: larger than any tier", alignment);
    return false;
  }
  return true;
}

void* Allocator::allocate_aligned(unsigned tier, std::size_t alignment, std::size_t size) {
  if (!check_alignment(alignment)) return nullptr;
  if (alignment <= granule_bytes) return allocate(tier, size);
  const std::size_t more = settings.canary ? canary_bytes : 0;
  if (size <= largest_class_bytes)
    if (const unsigned c = aligned_class(alignment, size + more); c < class_count)
      return allocate(tier, class_infos[c].bytes - more);
  if (!check_request(tier, size)) return nullptr;
  const auto align_spans =
      static_cast<std::uint32_t>(alignment <= span_bytes ? 1 : alignment >> span_shift);
  return try_with_spill(tier, size, [&](unsigned t) {
    return retry_after_purge(t, [&] { return allocate_large(t, size, align_spans, nullptr); });
  });
}

} // namespace nearfar::alloc
