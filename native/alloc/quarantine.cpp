#include "alloc/quarantine.hpp"

#include <new>

#include "alloc/heap.hpp"
#include "alloc/metadata.hpp"

namespace nearfar::alloc {

namespace {

/// Straight to the stacks they came from, where those have room.
void leave(Quarantine::Half& half) {
  const std::uint32_t count = half.count;
  half.count = 0;
  half.bytes = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Quarantine::Block& block = half.blocks[i];
    Stack* stack = block.size_class < cached_classes
                       ? &this_cache->tiers[block.tier]->stacks[block.size_class]
                       : nullptr;
    if (stack != nullptr && stack->count < stack->capacity)
      push(*stack, block.slot);
    else
      release_slot(block.slot);
  }
}

Quarantine* open_quarantine() {
  void* memory = take_metadata(sizeof(Quarantine));
  if (memory != nullptr) this_cache->quarantine = new (memory) Quarantine;
  return this_cache->quarantine;
}

} // namespace

Quarantine::Half* make_room_in_quarantine() {
  if (!own_cache()) return nullptr;
  Quarantine* kept = this_cache->quarantine;
  if (kept == nullptr && (kept = open_quarantine()) == nullptr) return nullptr;
  const Quarantine::Half& full = *kept->filling;
  if (full.count > 0) {
    kept->filling = &kept->halves[&full == kept->halves ? 1 : 0];
    leave(*kept->filling);
  }
  return kept->filling;
}

void empty_quarantine(Cache& cache) {
  if (cache.quarantine == nullptr) return;
  for (Quarantine::Half& half : cache.quarantine->halves)
    leave(half);
}

void forget_quarantine(Cache& cache) {
  if (cache.quarantine == nullptr) return;
  for (Quarantine::Half& half : cache.quarantine->halves)
    half.count = 0;
}

void forget_quarantined(Cache& cache, unsigned tier) {
  if (cache.quarantine == nullptr) return;
  for (Quarantine::Half& half : cache.quarantine->halves) {
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < half.count; ++i)
      if (half.blocks[i].tier != tier) half.blocks[kept++] = half.blocks[i];
    half.count = kept;
  }
}

void free_quarantine(Quarantine* quarantine) {
  if (quarantine != nullptr) return_metadata(quarantine, sizeof(Quarantine));
}

} // namespace nearfar::alloc
