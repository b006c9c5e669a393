#include "alloc/quarantine.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "alloc/allocator.hpp"
#include "alloc/metadata.hpp"

namespace nearfar::alloc {

Quarantine::Quarantine(std::size_t bytes)
    : next(halves[0].blocks), end(next + Half::capacity),
      entry_bytes(std::max(bytes / 2 / Half::capacity, std::size_t{1})), small_classes(0) {
  while (small_classes < cached_classes && class_infos[small_classes].bytes <= entry_bytes)
    ++small_classes;
}

void Quarantine::turn() {
  Half& empty = other();
  filling->stop = next;
  filling = &empty;
  next = empty.blocks;
  end = next + Half::capacity;
}

void Quarantine::forget() {
  for (Half& half : halves)
    stop_of(half) = half.blocks;
}

/// Frees a live block while the quarantine is on, if release_late() does not.
void Allocator::quarantine(BlockRef ref, unsigned size_class, BlockStack* stack) {
  if (settings.writes_blocks()) check_freed(ref);
  ref.state->store(quarantined, std::memory_order_relaxed);
  Quarantine* blocks = thread_quarantine();
  if (blocks == nullptr) return release_block(ref);
  const std::size_t entries = blocks->entries_of(class_infos[size_class].bytes);
  if (entries > Quarantine::Half::capacity) return release_block(ref);
  if (entries > blocks->room()) {
    release_quarantined(*blocks, blocks->other());
    blocks->turn();
  }
  blocks->add(ref, stack);
  blocks->end -= entries - 1;
}

/// The thread's quarantine, nullptr if it cannot have one.
Quarantine* Allocator::thread_quarantine() {
  if (!thread_cache().is_owned()) open_stacks(0); // of a thread that has no small blocks yet
  if (!thread_cache().is_owned()) return nullptr;
  Quarantine*& blocks = thread_cache().quarantine;
  if (blocks != nullptr) return blocks;
  void* memory = allocate_metadata(sizeof(Quarantine));
  if (memory == nullptr) return nullptr;
  blocks = new (memory) Quarantine(settings.quarantine_bytes);
  choose_home();
  return blocks;
}

/// Empties a half. Pushes blocks directly on the stacks that they came from, where those have room.
void Allocator::release_quarantined(Quarantine& blocks, Quarantine::Half& half) {
  const Quarantine::Block* stop = std::exchange(blocks.stop_of(half), half.blocks);
  for (const Quarantine::Block* block = half.blocks; block != stop; ++block) {
    if (settings.wipe) check_still_wiped(block->ref);
    if (block->stack == nullptr || !block->stack->push(block->ref)) release_block(block->ref);
  }
}

void forget_quarantine(ThreadCache& cache) {
  if (cache.quarantine != nullptr) cache.quarantine->forget();
}

void forget_quarantined(const Window& window, ThreadCache& cache, unsigned tier) {
  if (cache.quarantine == nullptr) return;
  for (Quarantine::Half& half : cache.quarantine->halves) {
    Quarantine::Block*& stop = cache.quarantine->stop_of(half);
    stop = std::remove_if(half.blocks, stop, [&](const Quarantine::Block& block) {
      return window.tier_of(block.ref.block) == tier;
    });
  }
}

void free_quarantine(Quarantine* quarantine) {
  if (quarantine != nullptr) free_metadata(quarantine, sizeof(Quarantine));
}

} // namespace nearfar::alloc
