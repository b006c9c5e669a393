// Freeing and resizing outside the fast path.
#include <cstring>

#include "alloc/allocator.hpp"
#include "alloc/canary.hpp"
#include "alloc/diagnostics.hpp"

namespace nearfar::alloc {

namespace {
constexpr auto relaxed = std::memory_order_relaxed;
}

/// The live block at `ptr`. Any other address aborts the process.
BlockRef Allocator::live_block(const void* ptr, const Span& span, const char* call) const {
  AtomicBlockState* state = state_of(span, ptr);
  if (state == nullptr || !is_live(state->load(relaxed)))
    abort_on_invalid_pointer(*this, call, ptr);
  return {const_cast<std::byte*>(static_cast<const std::byte*>(ptr)), state};
}

bool Allocator::is_large(const void* ptr, const Span& span) const {
  return span.kind() == SpanKind::large && (window.offset_of(ptr) & (span_bytes - 1)) == 0;
}

/// The budget that a live block is charged to, 0 for none.
int Allocator::budget_of(const void* ptr) const {
  const Span& span = window.span_of(ptr);
  if (is_large(ptr, span)) return span.budget();
  const int state = live_block(ptr, span, "hm_realloc").state->load(relaxed);
  return state >= budgeted ? state - budgeted + 1 : 0;
}

void Allocator::release_large(void* ptr, Span& span) {
  const std::uint64_t spans = span.extent.load(relaxed);
  if (const int budget = span.budget(); budget != 0) {
    span.set_arena_and_budget(span.arena(), 0);
    plan.discharge(budget, ptr, (spans - guard_spans()) << span_shift);
  }
  if (settings.wipe) wipe_large(ptr, (spans - guard_spans()) << span_shift);
  if (settings.guard) window.open_guard(window.span_index(ptr));
  if (Arena* arena = arena_of(ptr); arena != nullptr)
    arena->free_large(window.span_index(ptr), decay.tick());
  else
    tiers[window.tier_of(ptr)].free_large(window.span_index(ptr), decay.tick());
}

/// Pushes a freed block on its stack, if that has room.
bool Allocator::push(TierStacks& stacks, unsigned size_class, std::uint16_t owner, BlockRef ref) {
  BlockStack& stack = stacks.stacks[size_class];
  return owner == stacks.owner ? stack.push(ref) : stack.push_to_return(ref);
}

/// Frees a block that the fast path of release() does not take. While the quarantine is on, this is
/// the fast path.
void Allocator::release_late(void* ptr, const Span& span, TierStacks& stacks) {
  Quarantine* blocks = stacks.quarantine;
  if (blocks == nullptr || span.owner() != stacks.owner) return release_cached(ptr);
  const std::size_t size_class = span.size_class.load(relaxed);
  AtomicBlockState* state = state_of(span, ptr);
  if (state == nullptr || state->load(relaxed) != live || size_class >= blocks->small_classes ||
      blocks->next == blocks->end) [[unlikely]]
    return release_cached(ptr);
  blocks->add({static_cast<std::byte*>(ptr), state}, &stacks.stacks[size_class]);
  state->store(quarantined, relaxed);
}

/// Frees a block that is not in a slab of the default tier's stacks.
void Allocator::release_cached(void* ptr) {
  const Span& span = window.span_of(ptr);
  TierStacks& stacks = *thread_cache().tiers[window.tier_of(ptr)];
  const unsigned size_class = span.size_class.load(relaxed);
  if (!stacks.caches || span.kind() != SpanKind::slab || size_class >= cached_classes)
    return release_slowly(ptr);
  AtomicBlockState* state = state_of(span, ptr);
  if (state == nullptr || state->load(relaxed) != live) return release_slowly(ptr);
  const BlockRef ref{static_cast<std::byte*>(ptr), state};
  if (settings.quarantine_bytes != 0)
    return quarantine(ref, size_class, &stacks.stacks[size_class]);
  if (!push(stacks, size_class, span.owner(), ref)) release_slowly(ptr);
}

/// Pushes a block on the thread's stack, or frees it in its class. Does not check its state.
void Allocator::release_block(BlockRef ref) {
  const unsigned tier = window.tier_of(ref.block);
  const Span& span = window.span_of(ref.block);
  const unsigned size_class = span.size_class.load(relaxed);
  ref.state->store(cached, relaxed);
  if (size_class < cached_classes) {
    open_stacks(tier);
    TierStacks& stacks = *thread_cache().tiers[tier];
    if (stacks.caches) {
      if (push(stacks, size_class, span.owner(), ref)) return;
      make_room(tier, stacks, size_class);
      if (push(stacks, size_class, span.owner(), ref)) return;
    }
  }
  tiers[tier].classes[size_class].free_uncached(window, ref, decay.tick());
}

/// Makes room in a full stack.
void Allocator::make_room(unsigned tier, TierStacks& stacks, unsigned size_class) {
  BlockStack& stack = stacks.stacks[size_class];
  if (stack.to_return() >= stack.count()) return_blocks(tier, stacks, size_class);
  if (stack.to_return() == 0) stack.grow(size_class);
  if (stack.full()) flush_oldest(tier, stacks, size_class, stack.count() / 2);
}

/// Frees all but the newest `keep` blocks that the thread could allocate.
void Allocator::flush_oldest(unsigned tier, TierStacks& stacks, unsigned size_class,
                             std::uint32_t keep) {
  BlockStack& stack = stacks.stacks[size_class];
  const std::uint32_t count = stack.count();
  if (count <= keep) return;
  stack.drop(count); // a child forked meanwhile must not free these blocks again
  tiers[tier].classes[size_class].free(window, stack.blocks(), count - keep, decay.tick(),
                                       &stacks.owned[size_class]);
  stack.add_from(count - keep, count);
}

/// Frees the blocks of slabs that the thread does not own.
void Allocator::return_blocks(unsigned tier, TierStacks& stacks, unsigned size_class) {
  BlockStack& stack = stacks.stacks[size_class];
  const std::uint32_t count = stack.to_return();
  if (count == 0) return;
  const BlockRef* blocks = stack.blocks() + stack.limit();
  stack.drop_returned(); // first, as in flush_oldest()
  tiers[tier].classes[size_class].free(window, blocks, count, decay.tick(),
                                       &stacks.owned[size_class]);
}

void Allocator::release_slowly(void* ptr) {
  if (ptr == nullptr) return;
  const int saved_errno = errno;
  if (!window.contains(ptr)) abort_on_invalid_pointer(*this, "hm_free", ptr);
  const bool decay_due = decay.advance();
  Span& span = window.span_of(ptr);
  if (is_removed(window.span_index(ptr))) return;
  if (is_large(ptr, span)) {
    release_large(ptr, span);
  } else if (span.kind() == SpanKind::slab) {
    const BlockRef ref = live_block(ptr, span, "hm_free");
    const unsigned size_class = span.size_class.load(relaxed);
    if (const int state = ref.state->load(relaxed); state >= budgeted)
      plan.discharge(state - budgeted + 1, ref.block, class_infos[size_class].bytes);
    if (settings.quarantine_bytes != 0)
      quarantine(ref, size_class, nullptr);
    else if (settings.writes_blocks())
      release_checked(ref);
    else
      release_block(ref);
  } else if (span.kind() == SpanKind::arena_slab) {
    release_in_arena(ptr, span);
  } else {
    abort_on_invalid_pointer(*this, "hm_free", ptr);
  }
  if (decay_due) return_old_memory();
  errno = saved_errno;
}

/// Bytes of a live block, its canary included.
std::size_t Allocator::block_bytes(const void* ptr, const char* call) const {
  if (!window.contains(ptr)) abort_on_invalid_pointer(*this, call, ptr);
  const Span& span = window.span_of(ptr);
  if (is_large(ptr, span))
    return (std::size_t{span.extent.load(relaxed)} - guard_spans()) << span_shift;
  if (span.kind() != SpanKind::slab && span.kind() != SpanKind::arena_slab)
    abort_on_invalid_pointer(*this, call, ptr);
  live_block(ptr, span, call);
  return class_infos[span.size_class.load(relaxed)].bytes;
}

std::size_t Allocator::usable_size(const void* ptr, const char* call) const {
  const std::size_t bytes = block_bytes(ptr, call);
  const Span& span = window.span_of(ptr);
  if (span.kind() != SpanKind::slab || !slab_of(span)->canaries) return bytes;
  const std::size_t size = read_canary(ptr, bytes);
  if (size == damaged) abort_on_overflow(*this, call, ptr, bytes);
  return size;
}

void Allocator::set_budget(void* block, int budget) {
  Span& span = window.span_of(block);
  if (is_large(block, span))
    span.set_arena_and_budget(span.arena(), static_cast<std::uint8_t>(budget));
  else
    live_block(block, span, "malloc")
        .state->store(static_cast<std::int8_t>(budgeted + budget - 1), relaxed);
}

/// Resizes a block without moving it. Returns false if it has to move.
bool Allocator::resize_in_place(void* ptr, std::size_t has, std::size_t size) {
  Span& span = window.span_of(ptr);
  if (settings.canary && span.kind() == SpanKind::slab && slab_of(span)->canaries) return false;
  // It fits, and at least half of the block stays in use.
  if (size <= has && (size >= has / 2 || has <= granule_bytes)) return true;
  const std::size_t spans = spans_for(size);
  if (span.kind() != SpanKind::large || size <= largest_class_bytes ||
      spans >= window.spans_per_tier() || settings.guard)
    return false;
  const auto count = static_cast<std::uint32_t>(spans);
  const std::uint32_t first = window.span_index(ptr);
  Arena* arena = arena_of(ptr);
  const bool resized = arena != nullptr
                           ? arena->resize_large(first, count, decay.tick())
                           : tiers[window.tier_of(ptr)].resize_large(first, count, decay.tick());
  if (!resized) return false;
  if (const int budget = span.budget(); budget != 0) {
    const auto growth =
        static_cast<std::int64_t>(spans << span_shift) - static_cast<std::int64_t>(has);
    plan.charge(budget, growth, growth);
  }
  return true;
}

void* Allocator::reallocate(unsigned tier, void* ptr, std::size_t size) {
  const std::size_t has = usable_size(ptr, "hm_realloc");
  if (tier == window.tier_of(ptr) && resize_in_place(ptr, has, size)) return ptr;
  Arena* arena = tier == window.tier_of(ptr) ? arena_of(ptr) : nullptr;
  void* moved =
      arena != nullptr ? allocate_in_arena(*arena, granule_bytes, size) : allocate(tier, size);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, ptr, size < has ? size : has);
  if (const int budget = budget_of(ptr);
      budget != 0 && window.tier_of(moved) == window.tier_of(ptr)) {
    set_budget(moved, budget);
    const auto bytes = static_cast<std::int64_t>(block_bytes(moved, "hm_realloc"));
    plan.charge(budget, bytes, bytes - static_cast<std::int64_t>(block_bytes(ptr, "hm_realloc")));
  }
  release(ptr);
  return moved;
}

} // namespace nearfar::alloc
