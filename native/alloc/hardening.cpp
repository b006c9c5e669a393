// Hardening: checks of a block when it is freed, and when it leaves the quarantine.
#include <cstring>

#include "alloc/allocator.hpp"
#include "alloc/canary.hpp"
#include "alloc/diagnostics.hpp"
#include "os/address_space.hpp"

namespace nearfar::alloc {

namespace {

bool is_zero(const std::byte* bytes, std::size_t count) {
  return count == 0 || (bytes[0] == std::byte{0} && std::memcmp(bytes, bytes + 1, count - 1) == 0);
}

} // namespace

std::size_t Allocator::block_bytes_of(std::size_t size) const {
  if (!settings.canary || size > largest_class_bytes) return rounded_size(size);
  return size + canary_bytes <= largest_class_bytes ? rounded_size(size + canary_bytes)
                                                    : spans_for(size) << span_shift;
}

std::size_t Allocator::good_size(std::size_t size) const {
  const bool has_canary = settings.canary && size + canary_bytes <= largest_class_bytes;
  return has_canary && size <= largest_class_bytes ? size : block_bytes_of(size);
}

/// Checks the canary of a block that is freed, and clears the block. Aborts the process if the
/// canary was overwritten.
void Allocator::check_freed(BlockRef ref) const {
  const Slab* slab = slab_of(window.span_of(ref.block));
  const std::size_t bytes = class_infos[slab->size_class].bytes;
  if (slab->canaries && read_canary(ref.block, bytes) == damaged)
    abort_on_overflow(*this, "hm_free", ref.block, bytes);
  if (settings.wipe) std::memset(ref.block, 0, bytes);
}

void Allocator::release_checked(BlockRef ref) {
  check_freed(ref);
  release_block(ref);
}

void Allocator::check_size(const void* ptr, std::size_t size) const {
  if (!window.contains(ptr) || is_removed(window.span_index(ptr))) return;
  const Span& span = window.span_of(ptr);
  if (span.kind() != SpanKind::slab || !slab_of(span)->canaries) return;
  const std::size_t requested = usable_size(ptr, "free_sized");
  if (size != requested) abort_on_wrong_size(ptr, size, requested);
}

/// Aborts the process if a block in quarantine was written since it was freed.
void Allocator::check_still_wiped(BlockRef ref) const {
  const std::size_t bytes = class_infos[slab_of(window.span_of(ref.block))->size_class].bytes;
  if (!is_zero(ref.block, bytes)) abort_on_late_write(*this, ref.block, bytes);
}

/// Clears a large block that is freed.
void Allocator::wipe_large(void* ptr, std::size_t bytes) {
  auto* begin = static_cast<std::byte*>(ptr);
  const TierBacking& backing = tiers[window.tier_of(ptr)].runs.backing();
  if (!backing.anonymous || !backing.known_zero || os::discard(begin, bytes) != 0)
    std::memset(begin, 0, bytes);
}

} // namespace nearfar::alloc
