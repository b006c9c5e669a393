// Allocating and freeing blocks of arenas.
#include <cstring>

#include "alloc/allocator.hpp"
#include "alloc/diagnostics.hpp"

namespace nearfar::alloc {

/// Returns nullptr if the arena or its tier is full.
void* Allocator::try_arena(Arena& arena, std::size_t alignment, std::size_t size, bool* zeroed) {
  const auto tier = static_cast<unsigned>(arena.tier - tiers);
  if (const unsigned c = aligned_class(alignment, size); c < class_count) {
    BlockRef ref{};
    bool all_zeroed = false;
    if (arena.classes[c].allocate(arena.source(), c, &ref, 1, live, all_zeroed) > 0) {
      if (zeroed != nullptr) *zeroed = all_zeroed;
      return ref.block;
    }
  }
  // An arena without room for a slab may have room for a block.
  const auto align_spans =
      static_cast<std::uint32_t>(alignment <= span_bytes ? 1 : alignment >> span_shift);
  return allocate_large(tier, size, align_spans, zeroed, &arena);
}

void* Allocator::allocate_in_arena(Arena& arena, std::size_t alignment, std::size_t size,
                                   bool* zeroed) {
  if (!arena.usable()) {
    set_error(ENODEV, "the tier of the heap does not exist in this process");
    return nullptr;
  }
  const auto tier = static_cast<unsigned>(arena.tier - tiers);
  const int saved_errno = errno;
  if (!check_alignment(alignment) || !check_request(tier, size)) return nullptr;
  const bool decay_due = decay.advance();
  void* block = retry_after_purge(tier, [&] { return try_arena(arena, alignment, size, zeroed); });
  if (block != nullptr) {
    errno = saved_errno;
  } else {
    arena.failed.add(1);
    set_error(ENOMEM, "the heap in tier %s has no room for %zu bytes", tiers[tier].name(), size);
  }
  if (decay_due) return_old_memory();
  return block;
}

void* Allocator::reallocate_in_arena(Arena& arena, void* ptr, std::size_t size) {
  const std::size_t has = usable_size(ptr, "hm_heap_realloc");
  if (arena_of(ptr) == &arena) return reallocate(window.tier_of(ptr), ptr, size);
  void* moved = allocate_in_arena(arena, granule_bytes, size);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, ptr, size < has ? size : has);
  release(ptr);
  return moved;
}

void Allocator::release_in_arena(void* ptr, const Span& span) {
  const BlockRef ref = live_block(ptr, span, "hm_free");
  SlabClass& of_class = arena_of(ptr)->classes[span.size_class.load(std::memory_order_relaxed)];
  of_class.free_uncached(window, ref, decay.tick());
}

} // namespace nearfar::alloc
