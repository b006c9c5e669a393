#include "alloc/quarantine.hpp"

#include <new>

#include "alloc/allocator.hpp"
#include "alloc/metadata.hpp"

namespace nearfar::alloc {

namespace {

Quarantine* create_quarantine() {
  void* memory = allocate_metadata(sizeof(Quarantine));
  if (memory != nullptr) this_thread_cache->quarantine = new (memory) Quarantine;
  return this_thread_cache->quarantine;
}

} // namespace

/// Frees a live block while the quarantine is on.
void Allocator::quarantine(BlockRef ref, unsigned size_class) {
  if (is_removed(window.span_index(ref.block))) return;
  if (settings.writes_blocks()) check_freed(ref);
  ref.state->store(quarantined, std::memory_order_relaxed);
  const std::size_t bytes = class_infos[size_class].bytes;
  const std::size_t max_bytes = settings.quarantine_bytes / 2;
  Quarantine* blocks = thread_cache().quarantine;
  if (blocks == nullptr || !blocks->filling->fits(bytes, max_bytes)) [[unlikely]] {
    blocks = bytes > max_bytes ? nullptr : make_room_in_quarantine();
    if (blocks == nullptr) return release_block(ref);
  }
  blocks->filling->add(ref, size_class, window.tier_of(ref.block));
}

/// Releases the blocks of one half, which fills next. Returns nullptr if the thread cannot have a
/// quarantine.
Quarantine* Allocator::make_room_in_quarantine() {
  if (!thread_cache().is_owned()) open_stacks(0); // of a thread that has no small blocks yet
  if (!thread_cache().is_owned()) return nullptr;
  Quarantine* blocks = thread_cache().quarantine;
  if (blocks == nullptr) return create_quarantine();
  blocks->filling = blocks->filling == blocks->halves ? blocks->halves + 1 : blocks->halves;
  release_quarantined(*blocks->filling);
  return blocks;
}

/// Pushes blocks directly on the stacks that they came from, where those have room.
void Allocator::release_quarantined(Quarantine::Half& half) {
  const std::uint32_t count = half.count;
  half.count = 0;
  half.bytes = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Quarantine::Block& block = half.blocks[i];
    if (settings.wipe) check_still_wiped(block.ref);
    BlockStack* stack = block.size_class < cached_classes
                            ? &thread_cache().tiers[block.tier]->stacks[block.size_class]
                            : nullptr;
    if (stack == nullptr || !stack->push(block.ref)) release_block(block.ref);
  }
}

void forget_quarantine(ThreadCache& cache) {
  if (cache.quarantine == nullptr) return;
  for (Quarantine::Half& half : cache.quarantine->halves)
    half.count = 0;
}

void forget_quarantined(ThreadCache& cache, unsigned tier) {
  if (cache.quarantine == nullptr) return;
  for (Quarantine::Half& half : cache.quarantine->halves) {
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < half.count; ++i)
      if (half.blocks[i].tier != tier) half.blocks[kept++] = half.blocks[i];
    half.count = kept;
  }
}

void free_quarantine(Quarantine* quarantine) {
  if (quarantine != nullptr) free_metadata(quarantine, sizeof(Quarantine));
}

} // namespace nearfar::alloc
