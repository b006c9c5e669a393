// The C interface of heaps: a heap is an arena.
#include <nearfar/hmalloc.h>

#include <cerrno>
#include <cstring>

#include "alloc/allocator.hpp"
#include "alloc/api.hpp"
#include "alloc/diagnostics.hpp"
#include "alloc/hooks.hpp"
#include "alloc/stats.hpp"
#include "os/process.hpp"

using namespace nearfar;
using namespace nearfar::alloc;

namespace {

Arena* arena(hm_heap* heap) { return reinterpret_cast<Arena*>(heap); }

/// Ends the process if it is not a heap.
Arena& require_heap(const char* call, hm_heap* heap) {
  if (process_allocator.arenas.contains(arena(heap))) return *arena(heap);
  log_error("%s(%p): not a heap (destroyed, or never created)", call, static_cast<void*>(heap));
  os::abort_process();
}

} // namespace

extern "C" {

hm_heap* hm_heap_create(hm_tier tier, std::size_t capacity) noexcept {
  if (!check_tier(tier)) return nullptr;
  if (capacity != 0 && capacity < span_bytes) {
    set_error(EINVAL, "invalid capacity %zu: must be 0 or at least %zu", capacity, span_bytes);
    return nullptr;
  }
  Arena* created = process_allocator.arenas.create(process_allocator.tiers[tier], capacity);
  if (created == nullptr)
    set_error(ENOSPC, "all %u heaps exist already, or no memory is left for another",
              Arenas::max_count);
  return reinterpret_cast<hm_heap*>(created);
}

void hm_heap_destroy(hm_heap* heap) noexcept {
  if (heap == nullptr) return;
  Arena& destroyed = require_heap("hm_heap_destroy", heap);
  if (hm_on_free != nullptr)
    Arenas::visit_live(destroyed, [](void* block) { report_free(block, "hm_heap_destroy"); });
  process_allocator.arenas.destroy(destroyed, process_allocator.decay.tick(),
                                   process_allocator.settings.guard);
}

void* hm_heap_malloc(hm_heap* heap, std::size_t size) noexcept {
  return report_allocated(process_allocator.allocate_in_arena(*arena(heap), granule_bytes, size),
                          size, NEARFAR_CALL_SITE);
}

void* hm_heap_memalign(hm_heap* heap, std::size_t alignment, std::size_t size) noexcept {
  return report_allocated(process_allocator.allocate_in_arena(*arena(heap), alignment, size), size,
                          NEARFAR_CALL_SITE);
}

void* hm_heap_calloc(hm_heap* heap, std::size_t count, std::size_t size) noexcept {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    set_error(ENOMEM, "%zu times %zu bytes overflow", count, size);
    return nullptr;
  }
  bool zeroed = false;
  void* block = process_allocator.allocate_in_arena(*arena(heap), granule_bytes, bytes, &zeroed);
  if (block != nullptr && !zeroed) std::memset(block, 0, bytes);
  return report_allocated(block, bytes, NEARFAR_CALL_SITE);
}

void* hm_heap_realloc(hm_heap* heap, void* ptr, std::size_t size) noexcept {
  if (ptr == nullptr)
    return report_allocated(process_allocator.allocate_in_arena(*arena(heap), granule_bytes, size),
                            size, NEARFAR_CALL_SITE);
  if (size == 0) {
    hm_free(ptr);
    return nullptr;
  }
  return report_resized(ptr, size, NEARFAR_CALL_SITE, "hm_heap_realloc", [&] {
    return process_allocator.reallocate_in_arena(*arena(heap), ptr, size);
  });
}

hm_heap* hm_heap_of(const void* ptr) noexcept {
  if (!process_allocator.window.contains(ptr)) return nullptr;
  return reinterpret_cast<hm_heap*>(process_allocator.arena_of(ptr));
}

hm_tier hm_heap_tier(hm_heap* heap) noexcept {
  const Arena& of = require_heap("hm_heap_tier", heap);
  return static_cast<hm_tier>(of.tier - process_allocator.tiers);
}

void hm_heap_stats_sized(hm_heap* heap, struct hm_tier_stats* stats, std::size_t bytes) noexcept {
  hm_tier_stats all;
  Arenas::read_stats(require_heap("hm_heap_stats", heap), all);
  copy_stats(all, stats, bytes);
}

void(hm_heap_stats)(hm_heap* heap, struct hm_tier_stats* stats) noexcept {
  hm_heap_stats_sized(heap, stats, first_stats_bytes);
}

} // extern "C"
