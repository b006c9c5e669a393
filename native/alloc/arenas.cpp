#include "alloc/arenas.hpp"

#include <initializer_list>
#include <nearfar/hmalloc.h>
#include <new>

#include "alloc/metadata.hpp"

namespace nearfar::alloc {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

/// Blocks and bytes that were allocated in slabs of an arena, or freed there.
void add_slabs(const Arena& arena, hm_tier_stats& stats) {
  for (unsigned c = 0; c < class_count; ++c) {
    const std::uint64_t bytes = class_infos[c].bytes;
    const std::uint64_t allocations = arena.classes[c].allocations.get();
    const std::uint64_t frees = arena.classes[c].frees.get();
    stats.allocations += allocations;
    stats.frees += frees;
    stats.allocated_bytes += allocations * bytes;
    stats.live_bytes += (allocations - frees) * bytes;
    stats.cached_bytes += arena.classes[c].free_bytes(c);
  }
}

void reset(Arena& arena) {
  for (SlabClass& c : arena.classes)
    c.reset();
  for (SharedCounter* counter :
       {&arena.large_allocations, &arena.large_frees, &arena.large_allocated_bytes,
        &arena.large_live_bytes, &arena.failed})
    counter->reset();
}

/// Frees a slab or a large block of an arena that begins at a span. Its blocks are not used.
void free_run(Arena& arena, std::uint32_t first, std::uint8_t now, bool guards) {
  RunAllocator& runs = arena.tier->runs;
  const Span& span = runs.window().spans[first];
  if (span.kind() == SpanKind::large) {
    if (guards) runs.window().open_guard(first);
    return arena.tier->free_large(first, now);
  }
  Slab* slab = slab_of(span);
  forget_spans(runs.window(), slab);
  runs.free(first, class_infos[slab->size_class].spans, now);
  free_slab(slab);
}

} // namespace

std::byte* Arena::allocate_large(std::uint32_t count, std::uint32_t align_spans, bool& dirty) {
  if (!spans.take(count)) return nullptr;
  std::byte* block = tier->allocate_large(count, align_spans, dirty, number);
  if (block == nullptr) {
    spans.give_back(count);
    return nullptr;
  }
  const std::uint64_t bytes = std::uint64_t{count} << span_shift;
  large_allocations.add(1);
  large_allocated_bytes.add(bytes);
  large_live_bytes.add(bytes);
  return block;
}

void Arena::free_large(std::uint32_t first, std::uint8_t now) {
  const std::uint32_t count = tier->window().spans[first].extent.load(relaxed);
  spans.give_back(count);
  large_frees.add(1);
  large_live_bytes.add(std::uint64_t{0} - (std::uint64_t{count} << span_shift));
  tier->free_large(first, now);
}

bool Arena::resize_large(std::uint32_t first, std::uint32_t count, std::uint8_t now) {
  const std::uint32_t before = tier->window().spans[first].extent.load(relaxed);
  const std::uint32_t more = count > before ? count - before : 0;
  if (!spans.take(more)) return false;
  if (!tier->resize_large(first, count, now)) {
    spans.give_back(more);
    return false;
  }
  if (count < before) spans.give_back(before - count);
  large_live_bytes.add((std::uint64_t{count} << span_shift) -
                       (std::uint64_t{before} << span_shift));
  return true;
}

/// An arena that is not in use, or a new one. Returns nullptr if there can be no more.
Arena* Arenas::find_unused() {
  const unsigned created = created_.load(relaxed);
  for (unsigned i = 0; i < created; ++i)
    if (arenas_[i]->tier == nullptr) return arenas_[i];
  void* memory = created < max_count ? allocate_metadata(sizeof(Arena)) : nullptr;
  if (memory == nullptr) return nullptr;
  arenas_[created] = new (memory) Arena;
  arenas_[created]->number = static_cast<std::uint8_t>(created + 1);
  created_.store(created + 1, std::memory_order_release);
  return arenas_[created];
}

Arena* Arenas::create(TierHeap& tier, std::size_t capacity) {
  const os::LockGuard guard(lock_);
  Arena* arena = find_unused();
  if (arena == nullptr) return nullptr;
  arena->tier = &tier;
  arena->lost = false;
  arena->spans.reset(capacity == 0 ? UINT64_MAX : capacity >> span_shift);
  return arena;
}

void Arenas::visit_live(const Arena& arena, void (*visit)(void* block)) {
  if (arena.lost) return;
  const Window& window = arena.tier->window();
  const std::uint32_t first = arena.tier->runs.first_span();
  const std::uint32_t end = first + arena.tier->runs.used_spans();
  for (std::uint32_t at = first; at < end; ++at) {
    const Span& span = window.spans[at];
    if (span.arena() != arena.number) continue;
    if (span.kind() == SpanKind::large) visit(window.span_address(at));
    if (span.kind() != SpanKind::arena_slab || span.extent.load(relaxed) != at) continue;
    Slab* slab = slab_of(span);
    for (std::uint32_t i = 0; i < slab->blocks; ++i)
      if (is_live(slab->states()[i].load(relaxed)))
        visit(slab->start + std::size_t{i} * class_infos[slab->size_class].bytes);
  }
}

void Arenas::destroy(Arena& arena, std::uint8_t now, bool guards) {
  const os::LockGuard guard(lock_);
  TierHeap& tier = *arena.tier;
  const Window& window = tier.window();
  const std::uint32_t first = tier.runs.first_span();
  const std::uint64_t used = arena.lost ? 0 : tier.runs.span_bytes_used() >> span_shift;
  for (std::uint32_t at = first; at < first + used; ++at)
    if (window.spans[at].arena() == arena.number) free_run(arena, at, now, guards);
  hm_tier_stats stats{};
  add_slabs(arena, stats);
  tier.past_arena_blocks.add(stats.allocations);
  tier.past_arena_bytes.add(stats.allocated_bytes);
  reset(arena);
  arena.tier = nullptr;
}

void Arenas::close() {
  const os::LockGuard guard(lock_);
  for (unsigned i = created_.exchange(0, relaxed); i > 0; --i)
    free_metadata(arenas_[i - 1], sizeof(Arena));
}

std::size_t Arenas::purge(TierHeap& tier, std::uint8_t now, bool all) {
  if (created_.load(relaxed) == 0) return 0;
  const os::LockGuard guard(lock_);
  std::size_t bytes = 0;
  for_each_existing([&](Arena& arena) {
    if (arena.tier == &tier && !arena.lost)
      for (SlabClass& c : arena.classes)
        bytes += c.purge(arena.source(), now, all);
  });
  tier.returned_bytes.add(bytes);
  return bytes;
}

void Arenas::lose(const TierHeap& tier) {
  for_each_existing([&](Arena& arena) { arena.lost = arena.lost || arena.tier == &tier; });
}

void Arenas::add_slab_statistics(const TierHeap& tier, hm_tier_stats& stats) {
  const os::LockGuard guard(lock_);
  stats.allocations += tier.past_arena_blocks.get();
  stats.frees += tier.past_arena_blocks.get();
  stats.allocated_bytes += tier.past_arena_bytes.get();
  for_each_existing([&](const Arena& arena) {
    if (arena.tier == &tier && !arena.lost) add_slabs(arena, stats);
  });
}

void Arenas::read_stats(const Arena& arena, hm_tier_stats& stats) {
  stats = {};
  add_slabs(arena, stats);
  stats.allocations += arena.large_allocations.get();
  stats.frees += arena.large_frees.get();
  stats.allocated_bytes += arena.large_allocated_bytes.get();
  stats.live_bytes += arena.large_live_bytes.get();
  stats.failed = arena.failed.get();
  stats.span_bytes = arena.spans.used() << span_shift;
  const std::uint64_t most = arena.spans.most();
  stats.capacity_bytes = most == UINT64_MAX ? 0 : most << span_shift;
}

bool Arenas::contains(const Arena* arena) const {
  bool found = false;
  for_each_existing(
      [&](const Arena& each) { found = found || (&each == arena && each.tier != nullptr); });
  return found;
}

} // namespace nearfar::alloc
