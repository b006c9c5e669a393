#include "alloc/tier_heap.hpp"

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "alloc/tier_mapping.hpp"
#include "os/address_space.hpp"

namespace nearfar::alloc {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t tier_alignment = std::size_t{1} << 30;
constexpr std::size_t large_slot = tier_alignment * 16; ///< where that alignment is affordable

std::uint32_t spans_within(std::size_t slot_bytes, std::size_t capacity) {
  const std::size_t max_spans = (slot_bytes >> span_shift) - 1;
  const std::size_t spans = capacity >> span_shift;
  return static_cast<std::uint32_t>(capacity == 0 || spans > max_spans ? max_spans : spans);
}

Error no_metadata() { return Error::make(Errc::no_space, "no memory for the metadata of a tier"); }

} // namespace

/// A tier while it is opened: closed again by the destructor unless commit() is called.
class TierHeap::Opening {
public:
  explicit Opening(TierHeap& tier) : tier_(tier) {
    tier.forget_removed_blocks();
    tier.state_.store(TierState::opening);
    tier.runs.close();
    tier.reset();
  }
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;
  ~Opening() {
    if (!committed_) tier_.close();
  }
  void commit() {
    committed_ = true;
    tier_.state_.store(TierState::ready, std::memory_order_release);
  }

private:
  TierHeap& tier_;
  bool committed_ = false;
};

Status TierHeap::open(const char* name, const TierOptions& options, int spill_to) {
  Opening opening(*this);
  std::strcpy(name_, name);
  spill_to_ = spill_to;
  if (Status s = open_memory(options); !s) return s.error();
  opening.commit();
  return Done{};
}

Status TierHeap::open_memory(const TierOptions& options) {
  if (slot_bytes() <= span_bytes)
    return Error::make(Errc::no_space, "no address space left for a tier in slot %u", slot_);
  Result<std::size_t> capacity = tier_capacity(*this, options);
  if (!capacity) return capacity.error();
  const bool device = options.spec.kind->maps == tier::Maps::device;
  const std::size_t unit = device ? huge_page : span_bytes;
  const std::size_t bytes = *capacity / unit * unit;
  if (Status s = map_tier(*this, options, bytes); !s) return s.error();
  if (!runs.open(first_span(), spans_within(slot_bytes(), bytes))) return no_metadata();
  return Done{};
}

bool TierHeap::open_default() {
  Opening opening(*this);
  std::strcpy(name_, "near");
  TierBacking& backing = runs.backing();
  backing.mapped = window().reserved;
  backing.by_chunk = !window().reserved;
  if (!runs.open(first_span(), spans_within(slot_bytes(), 0))) return false;
  opening.commit();
  return true;
}

Status TierHeap::apply(const TierOptions& options) {
  if (options.maps_file() || options.spec.populate || options.reserve != Reserve::chunk)
    return Error::make(Errc::bad_input,
                       "the near tier must be dram or numa, without populate or reserve")
        .try_next("configure other memory as NEARFAR_HMALLOC_FAR");
  if (options.has_weights)
    return Error::make(Errc::bad_input, "the near tier cannot have weights=")
        .try_next("give another tier the weights, and name it in the rules of a plan");
  if (Status s = move_to_nodes(*this, options); !s) return s.error();
  runs.apply(options, spans_within(slot_bytes(), options.capacity));
  advise_pages(base(), slot_bytes(), options);
  return Done{};
}

void TierHeap::close() {
  unmap_tier(*this);
  runs.close();
  state_.store(TierState::absent);
}

void TierHeap::remove_in_child(bool interrupted) {
  const std::size_t slot = window().spans_per_tier() << span_shift;
  const std::size_t align = slot >= large_slot ? tier_alignment : huge_page;
  const std::size_t used = (std::size_t{runs.highest_frontier()} << span_shift) - slot_ * slot;
  unmap_tier(*this);
  const std::size_t removed = std::min((used + align - 1) / align * align, slot);
  removed_spans_ = static_cast<std::uint32_t>(removed >> span_shift);
  state_.store(interrupted ? TierState::lost : TierState::absent);
}

/// Removes blocks of a removed tier from the span table; removed_spans() still covers them.
void TierHeap::forget_removed_blocks() {
  Span* span = window().spans + slot_ * window().spans_per_tier();
  for (const Span* end = span + removed_spans_; span != end; ++span)
    if (span->kind() != SpanKind::none) span->set_kind(SpanKind::none);
}

void TierHeap::reset() {
  spill_to_ = -1;
  for (SlabClass& c : classes)
    c.reset();
  for (SharedCounter* counter :
       {&large_allocations, &large_frees, &large_allocated_bytes, &large_live_bytes, &spilled,
        &failed, &returned_bytes, &past_arena_blocks, &past_arena_bytes})
    counter->reset();
}

std::byte* TierHeap::allocate_large(std::uint32_t spans, std::uint32_t align_spans, bool& dirty,
                                    std::uint8_t arena) {
  const std::uint32_t first = runs.allocate(spans, align_spans, dirty);
  if (first == no_span) return nullptr;
  Span& span = window().spans[first];
  span.extent.store(spans, relaxed);
  span.set_arena_and_budget(arena, 0);
  span.set_kind(SpanKind::large, std::memory_order_release);
  const std::uint64_t bytes = std::uint64_t{spans} << span_shift;
  large_allocations.add(1);
  large_allocated_bytes.add(bytes);
  large_live_bytes.add(bytes);
  return window().span_address(first);
}

void TierHeap::free_large(std::uint32_t first, std::uint8_t now) {
  Span& span = window().spans[first];
  const std::uint32_t spans = span.extent.load(relaxed);
  span.set_kind(SpanKind::none);
  span.set_arena_and_budget(0, 0);
  large_frees.add(1);
  large_live_bytes.add(std::uint64_t{0} - (std::uint64_t{spans} << span_shift));
  runs.free(first, spans, now);
}

bool TierHeap::resize_large(std::uint32_t first, std::uint32_t spans, std::uint8_t now) {
  Span& span = window().spans[first];
  const std::uint32_t before = span.extent.load(relaxed);
  if (spans == before) return true;
  if (spans > before && !runs.extend(first, before, spans - before)) return false;
  span.extent.store(spans, relaxed);
  if (spans < before) runs.free(first + spans, before - spans, now);
  large_live_bytes.add((std::uint64_t{spans} << span_shift) -
                       (std::uint64_t{before} << span_shift));
  return true;
}

std::size_t TierHeap::purge(std::uint8_t now, bool all) {
  std::size_t bytes = 0;
  for (SlabClass& c : classes)
    bytes += c.purge(runs, now, all);
  bytes += runs.purge(now, all);
  returned_bytes.add(bytes);
  return bytes;
}

} // namespace nearfar::alloc
