#include "alloc/quarantine.hpp"

#include <new>

#include "alloc/heap.hpp"
#include "alloc/metadata.hpp"
#include "alloc/settings.hpp"

namespace nearfar::alloc {

namespace {

void leave(Quarantine& ring) {
  const Slot slot = ring.slots[ring.first];
  ring.first = (ring.first + 1) % Quarantine::capacity;
  --ring.count;
  ring.bytes -= class_infos[slab_of(slot.block)->size_class].bytes;
  release_slot(slot);
}

} // namespace

bool put_in_quarantine(Slot slot, std::size_t bytes) {
  const std::size_t most = settings.quarantine_bytes;
  if (bytes > most || !own_cache()) return false;
  Quarantine*& ring = this_cache->quarantine;
  if (ring == nullptr) {
    void* memory = take_metadata(sizeof(Quarantine));
    if (memory == nullptr) return false;
    ring = new (memory) Quarantine;
  }
  while (ring->count > 0 && (ring->count == Quarantine::capacity || ring->bytes + bytes > most))
    leave(*ring);
  ring->slots[(ring->first + ring->count) % Quarantine::capacity] = slot;
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
