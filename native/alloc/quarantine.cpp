#include "alloc/quarantine.hpp"

#include <new>

#include "alloc/heap.hpp"
#include "alloc/metadata.hpp"
#include "alloc/settings.hpp"

namespace nearfar::alloc {

namespace {

/// Straight to the stack it came from, where that has room.
void leave(Quarantine& ring) {
  const Quarantine::Block block = ring.blocks[ring.first];
  ring.first = (ring.first + 1) % Quarantine::capacity;
  --ring.count;
  ring.bytes -= class_infos[block.size_class].bytes;
  if (block.size_class < cached_classes)
    if (Stack& stack = this_cache->tiers[block.tier]->stacks[block.size_class];
        stack.count < stack.capacity)
      return push(stack, block.slot);
  release_slot(block.slot);
}

} // namespace

bool put_in_quarantine(const Quarantine::Block& block) {
  const std::size_t most = settings.quarantine_bytes;
  const std::size_t bytes = class_infos[block.size_class].bytes;
  if (bytes > most || !own_cache()) return false;
  Quarantine*& ring = this_cache->quarantine;
  if (ring == nullptr) {
    void* memory = take_metadata(sizeof(Quarantine));
    if (memory == nullptr) return false;
    ring = new (memory) Quarantine;
  }
  while (ring->count > 0 && (ring->count == Quarantine::capacity || ring->bytes + bytes > most))
    leave(*ring);
  ring->blocks[(ring->first + ring->count) % Quarantine::capacity] = block;
  ++ring->count;
  ring->bytes += bytes;
  return true;
}

void empty_quarantine(Cache& cache) {
  while (cache.quarantine != nullptr && cache.quarantine->count > 0)
    leave(*cache.quarantine);
}

void forget_quarantine(Cache& cache) {
  if (cache.quarantine != nullptr) cache.quarantine->count = 0;
}

void free_quarantine(Quarantine* quarantine) {
  if (quarantine != nullptr) return_metadata(quarantine, sizeof(Quarantine));
}

} // namespace nearfar::alloc
