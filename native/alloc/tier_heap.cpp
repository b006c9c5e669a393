#include "alloc/tier_heap.hpp"

#include <initializer_list>

#include "alloc/decay.hpp"

namespace nearfar::alloc {

constinit TierHeap tiers[tier_count];

namespace {
constexpr auto relaxed = std::memory_order_relaxed;
}

void TierHeap::reset() {
  spill_to = -1;
  for (SlabClass& c : classes)
    c.reset();
  for (SharedCounter* counter : {&large_allocations, &large_frees, &large_allocated_bytes,
                                 &large_live_bytes, &spilled, &failed, &returned_bytes})
    counter->reset();
}

std::byte* take_large(TierHeap& tier, std::uint32_t spans, std::uint32_t align_spans, bool& dirty) {
  const std::uint32_t first = tier.runs.take(spans, align_spans, dirty);
  if (first == no_span) return nullptr;
  Span& span = geometry.spans[first];
  span.extent.store(spans, relaxed);
  span.kind.store(static_cast<std::uint8_t>(SpanKind::large), std::memory_order_release);
  const std::uint64_t bytes = std::uint64_t{spans} << span_shift;
  tier.large_allocations.add(1);
  tier.large_allocated_bytes.add(bytes);
  tier.large_live_bytes.add(bytes);
  return span_address(first);
}

void give_back_large(TierHeap& tier, std::uint32_t first) {
  Span& span = geometry.spans[first];
  const std::uint32_t spans = span.extent.load(relaxed);
  span.kind.store(static_cast<std::uint8_t>(SpanKind::none), relaxed);
  tier.large_frees.add(1);
  tier.large_live_bytes.add(std::uint64_t{0} - (std::uint64_t{spans} << span_shift));
  tier.runs.give_back(first, spans, current_tick());
}

bool resize_large(TierHeap& tier, std::uint32_t first, std::uint32_t spans) {
  Span& span = geometry.spans[first];
  const std::uint32_t before = span.extent.load(relaxed);
  if (spans == before) return true;
  if (spans > before && !tier.runs.extend(first, before, spans - before)) return false;
  span.extent.store(spans, relaxed);
  if (spans < before) tier.runs.give_back(first + spans, before - spans, current_tick());
  tier.large_live_bytes.add((std::uint64_t{spans} << span_shift) -
                            (std::uint64_t{before} << span_shift));
  return true;
}

std::size_t purge_tier(TierHeap& tier, std::uint8_t now, bool all) {
  std::size_t bytes = 0;
  for (unsigned c = 0; c < class_count; ++c)
    bytes += tier.classes[c].purge(tier.runs, now, all);
  bytes += tier.runs.purge(now, all);
  tier.returned_bytes.add(bytes);
  return bytes;
}

} // namespace nearfar::alloc
