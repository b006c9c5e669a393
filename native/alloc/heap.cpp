#include "alloc/heap.hpp"

#include <bit>
#include <cstring>

#include "alloc/decay.hpp"
#include "alloc/quarantine.hpp"
#include "alloc/trouble.hpp"
#include "os/address_space.hpp"

namespace nearfar::alloc {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr std::size_t largest_request = std::size_t{1} << 46;

Span& span_of(const void* ptr) { return geometry.spans[offset_of(ptr) >> span_shift]; }
SpanKind kind_of(const Span& span) { return static_cast<SpanKind>(span.kind.load(relaxed)); }

std::uint32_t guard_spans() { return settings.guard ? 1 : 0; }

/// The last span of a run made inaccessible, or usable again.
void set_guard(std::byte* first, std::uint64_t spans, bool on) {
  os::protect(first + ((spans - 1) << span_shift), span_bytes,
              on ? os::Access::none : os::Access::read_write);
}

void* take_one_large(unsigned tier, std::size_t size, std::uint32_t align_spans, bool* zeroed) {
  const std::size_t spans = spans_for(size == 0 ? 1 : size) + guard_spans();
  bool dirty = true;
  std::byte* block = nullptr;
  if (spans < spans_per_tier())
    block = take_large(tiers[tier], static_cast<std::uint32_t>(spans), align_spans, dirty);
  else
    errno = ENOMEM;
  if (block != nullptr && zeroed != nullptr) *zeroed = !dirty;
  if (block != nullptr && settings.guard) set_guard(block, spans, true);
  return block;
}

/// One block past the stacks: of a thread without any, or of a class that is not cached.
void* take_one(unsigned tier, unsigned size_class, bool* zeroed) {
  Slot slot{};
  bool fresh = false;
  if (tiers[tier].classes[size_class].take(tiers[tier].runs, size_class, &slot, 1, live, fresh) ==
      0)
    return nullptr;
  if (zeroed != nullptr) *zeroed = fresh;
  return slot.block;
}

void* take_from_stack(unsigned tier, unsigned size_class) {
  Stack& stack = this_cache->tiers[tier]->stacks[size_class];
  if (stack.capacity == 0 || !refill(tiers[tier], stack, size_class)) return nullptr;
  const Slot slot = stack.slots[--stack.count];
  slot.state->store(live, relaxed);
  stack.allocations.add(1);
  return slot.block;
}

/// From this tier alone, nullptr if it is full.
void* take_any(unsigned tier, std::size_t size, bool* zeroed) {
  if (size > largest_class_bytes) return take_one_large(tier, size, 1, zeroed);
  const unsigned size_class = class_of(size);
  void* block = nullptr;
  if (size_class < cached_classes) {
    open_cache(tier);
    block = take_from_stack(tier, size_class);
  }
  if (block == nullptr) block = take_one(tier, size_class, zeroed);
  // A tier without room for a slab may have it for a block.
  if (block == nullptr) block = take_one_large(tier, size, 1, zeroed);
  return block;
}

/// Calls take(); if there is no room, once more with what is free in all classes given up.
template <class Take>
void* take_or_gather(unsigned tier, const Take& take) {
  void* block = take();
  if (block != nullptr) return block;
  const os::LockGuard guard(purge_lock());
  for (SlabClass& c : tiers[tier].classes)
    c.purge(tiers[tier].runs, current_tick(), true);
  return take();
}

bool check_request(unsigned tier, std::size_t size) {
  if (size > largest_request) {
    report(ENOMEM, "%zu bytes are more than any tier can span", size);
    return false;
  }
  if (tier >= tier_count) {
    report(EINVAL, "there is no tier %d: tiers are numbered 0 to 7", static_cast<int>(tier));
    return false;
  }
  if (tiers[tier].ready()) return true;
  if (!open_near()) {
    report(ENOMEM, "this process has no address space for the window of tiers");
    return false;
  }
  if (tiers[tier].ready()) return true; // near, before anything is configured
  configure();
  if (tiers[tier].ready()) return true;
  if (tiers[tier].state.load(relaxed) == TierState::absent)
    report(ENODEV,
           tier == 1 ? "tier far is not configured: set NEARFAR_HMALLOC_FAR, for example numa:1 or "
                       "file:/mnt, or call hm_tier_create"
                     : "tier %d is not configured: call hm_tier_create",
           static_cast<int>(tier));
  return false;
}

/// Tries a tier and then those it spills to.
template <class Take>
void* with_spilling(unsigned tier, std::size_t size, const Take& take) {
  const unsigned meant = tier;
  for (unsigned tried = 0; tried < tier_count; ++tried) {
    if (void* block = take(tier); block != nullptr) {
      if (tier != meant) tiers[meant].spilled.add(1);
      return block;
    }
    const int next = tiers[tier].spill_to;
    if (next < 0 || !tiers[next].ready()) break;
    tier = static_cast<unsigned>(next);
  }
  tiers[meant].failed.add(1);
  report(ENOMEM, "tier %s has no room for %zu bytes (%s)", tiers[meant].name, size,
         std::strerror(errno));
  return nullptr;
}

/// The first class of at least `size` bytes whose blocks all lie at multiples of `alignment`;
/// class_count if none does.
unsigned aligned_class(std::size_t alignment, std::size_t size) {
  if (alignment > span_bytes || size > largest_class_bytes) return class_count;
  unsigned c = class_of(size < alignment ? alignment : size);
  while (c < class_count && class_infos[c].bytes % alignment != 0)
    ++c;
  return c;
}

} // namespace

void* allocate_slowly(unsigned tier, std::size_t size, bool* zeroed) {
  const int code = errno;
  if (!check_request(tier, size)) return nullptr;
  const bool decay_due = advance_decay();
  void* block = with_spilling(tier, size, [&](unsigned t) {
    return take_or_gather(t, [&] { return take_any(t, size, zeroed); });
  });
  if (block != nullptr) errno = code;
  if (decay_due) return_old_memory();
  return block;
}

void* allocate_zeroed(unsigned tier, std::size_t count, std::size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    report(ENOMEM, "%zu times %zu bytes overflow", count, size);
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

void* allocate_aligned(unsigned tier, std::size_t alignment, std::size_t size) {
  if (!std::has_single_bit(alignment)) {
    report(EINVAL, "invalid alignment %zu: must be a power of two", alignment);
    return nullptr;
  }
  if (alignment > largest_request) {
    report(ENOMEM, "invalid alignment %zu: larger than any tier", alignment);
    return nullptr;
  }
  if (alignment <= granule_bytes) return allocate(tier, size);
  if (const unsigned c = aligned_class(alignment, size); c < class_count)
    return allocate(tier, class_infos[c].bytes);
  if (!check_request(tier, size)) return nullptr;
  const auto align_spans =
      static_cast<std::uint32_t>(alignment <= span_bytes ? 1 : alignment >> span_shift);
  return with_spilling(tier, size, [&](unsigned t) {
    return take_or_gather(t, [&] { return take_one_large(t, size, align_spans, nullptr); });
  });
}

namespace {

/// The live block at `ptr`; what is none ends the process.
Slot live_slot(const void* ptr, const Span& span, const char* call) {
  Slab* slab = reinterpret_cast<Slab*>(span.word.load(relaxed)) - 1;
  const ClassInfo& info = class_infos[slab->size_class];
  const auto inside = static_cast<std::size_t>(static_cast<const std::byte*>(ptr) - slab->start);
  const std::size_t index = inside / info.bytes;
  if (inside % info.bytes != 0 || index >= slab->blocks ||
      !is_live(slab->states()[index].load(relaxed)))
    misuse(call, ptr);
  return {slab->start + inside, slab->states() + index};
}

bool is_large(const void* ptr, const Span& span) {
  return kind_of(span) == SpanKind::large && (offset_of(ptr) & (span_bytes - 1)) == 0;
}

/// The budget that a live block counts against, 0 for none.
int budget_of(const void* ptr) {
  const Span& span = span_of(ptr);
  if (is_large(ptr, span)) return span.budget.load(relaxed);
  const int state = live_slot(ptr, span, "hm_realloc").state->load(relaxed);
  return state >= budgeted ? state - budgeted + 1 : 0;
}

void release_large(void* ptr, Span& span) {
  const std::uint64_t spans = span.extent.load(relaxed);
  if (const int budget = span.budget.exchange(0, relaxed); budget != 0)
    leave_budget(budget, ptr, (spans - guard_spans()) << span_shift);
  if (settings.guard) set_guard(static_cast<std::byte*>(ptr), spans, false);
  give_back_large(tiers[tier_of(ptr)], static_cast<std::uint32_t>(&span - geometry.spans));
}

} // namespace

void release_slot(Slot slot) {
  const unsigned tier = tier_of(slot.block);
  const unsigned size_class = span_of(slot.block).size_class.load(relaxed);
  SlabClass& central = tiers[tier].classes[size_class];
  slot.state->store(cached, relaxed);
  if (size_class < cached_classes) open_cache(tier);
  Stack* stack =
      size_class < cached_classes ? &this_cache->tiers[tier]->stacks[size_class] : nullptr;
  if (stack == nullptr || stack->capacity == 0) {
    central.give_back(&slot, 1, current_tick(), true);
    return;
  }
  if (stack->count == stack->capacity) flush_half(tiers[tier], *stack, size_class);
  push(*stack, slot);
}

void release_to_quarantine(Slot slot, unsigned size_class) {
  if (is_removed(static_cast<std::uint32_t>(offset_of(slot.block) >> span_shift))) return;
  slot.state->store(quarantined, relaxed);
  if (!put_in_quarantine(slot, size_class, tier_of(slot.block))) release_slot(slot);
}

void release_slowly(void* ptr) {
  if (ptr == nullptr) return;
  const int code = errno;
  if (geometry.base == 0 || !is_ours(ptr)) misuse("hm_free", ptr);
  const bool decay_due = advance_decay();
  Span& span = span_of(ptr);
  if (is_removed(static_cast<std::uint32_t>(&span - geometry.spans))) return;
  if (is_large(ptr, span)) {
    release_large(ptr, span);
  } else if (kind_of(span) == SpanKind::slab) {
    const Slot slot = live_slot(ptr, span, "hm_free");
    const std::size_t bytes = class_infos[span.size_class.load(relaxed)].bytes;
    if (const int state = slot.state->load(relaxed); state >= budgeted)
      leave_budget(state - budgeted + 1, slot.block, bytes);
    if (settings.quarantine_bytes != 0)
      release_to_quarantine(slot, span.size_class.load(relaxed));
    else
      release_slot(slot);
  } else {
    misuse("hm_free", ptr);
  }
  if (decay_due) return_old_memory();
  errno = code;
}

std::size_t usable_size(const void* ptr, const char* call) {
  if (geometry.base == 0 || !is_ours(ptr)) misuse(call, ptr);
  const Span& span = span_of(ptr);
  if (is_large(ptr, span))
    return (std::size_t{span.extent.load(relaxed)} - guard_spans()) << span_shift;
  if (kind_of(span) != SpanKind::slab) misuse(call, ptr);
  live_slot(ptr, span, call);
  return class_infos[span.size_class.load(relaxed)].bytes;
}

void set_budget(void* block, int budget) {
  Span& span = span_of(block);
  if (is_large(block, span))
    span.budget.store(static_cast<std::uint8_t>(budget), relaxed);
  else
    live_slot(block, span, "malloc")
        .state->store(static_cast<std::int8_t>(budgeted + budget - 1), relaxed);
}

namespace {

/// Resizes a block where it is. False if it has to move.
bool resize_in_place(void* ptr, std::size_t has, std::size_t size) {
  // If it fits and at least half of it stays in use.
  if (size <= has && (size >= has / 2 || has <= granule_bytes)) return true;
  Span& span = span_of(ptr);
  if (kind_of(span) != SpanKind::large || size <= largest_class_bytes || size > largest_request ||
      settings.guard)
    return false;
  const std::size_t spans = spans_for(size);
  if (!resize_large(tiers[tier_of(ptr)], static_cast<std::uint32_t>(&span - geometry.spans),
                    static_cast<std::uint32_t>(spans)))
    return false;
  if (const int budget = span.budget.load(relaxed); budget != 0) {
    const auto grown =
        static_cast<std::int64_t>(spans << span_shift) - static_cast<std::int64_t>(has);
    charge_budget(budget, grown, grown);
  }
  return true;
}

} // namespace

void* reallocate(unsigned tier, void* ptr, std::size_t size) {
  const std::size_t has = usable_size(ptr, "hm_realloc");
  if (tier == tier_of(ptr) && resize_in_place(ptr, has, size)) return ptr;
  void* moved = allocate(tier, size);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, ptr, size < has ? size : has);
  if (const int budget = budget_of(ptr); budget != 0 && tier_of(moved) == tier_of(ptr)) {
    set_budget(moved, budget);
    const auto bytes = static_cast<std::int64_t>(usable_size(moved, "hm_realloc"));
    charge_budget(budget, bytes, bytes - static_cast<std::int64_t>(has));
  }
  release(ptr);
  return moved;
}

} // namespace nearfar::alloc
