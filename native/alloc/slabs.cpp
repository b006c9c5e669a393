#include "alloc/slabs.hpp"

#include <emmintrin.h>
#include <new>
#include <utility>

#include "alloc/metadata.hpp"
#include "os/address_space.hpp"

namespace nearfar::alloc {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr std::uint32_t vector = 16; ///< states compared at once

std::size_t slab_metadata_bytes(std::uint32_t blocks) {
  return sizeof(Slab) + (blocks / vector + 1) * vector;
}

#if defined(__SANITIZE_THREAD__)
unsigned free_mask(const AtomicBlockState* states) { // one by one: a vector load is not atomic
  unsigned mask = 0;
  for (unsigned i = 0; i < vector; ++i)
    if (states[i].load(relaxed) <= free_block) mask |= 1u << i;
  return mask;
}
#else
/// A mask of the blocks among 16 that can be allocated. Other threads concurrently write other
/// states, never these.
unsigned free_mask(const AtomicBlockState* states) {
  const __m128i v = _mm_load_si128(reinterpret_cast<const __m128i*>(states));
  return static_cast<unsigned>(_mm_movemask_epi8(_mm_cmplt_epi8(v, _mm_set1_epi8(free_block + 1))));
}
#endif

/// Calls visit(span) for each span of a slab.
template <class Visit>
void for_each_span(const Window& window, const Slab* slab, const Visit& visit) {
  for (std::uint32_t i = 0; i < class_infos[slab->size_class].spans; ++i)
    visit(window.spans[slab->first_span + i]);
}

/// `detail`: an owner or an arena.
void describe_spans(const Window& window, const Slab* slab, SpanKind kind, std::uint16_t detail) {
  for_each_span(window, slab, [&](Span& span) {
    span.word.store(reinterpret_cast<std::uintptr_t>(slab + 1), relaxed);
    span.extent.store(slab->first_span, relaxed);
    span.size_class.store(static_cast<std::uint8_t>(slab->size_class), relaxed);
    span.detail.store(detail, relaxed);
    span.set_kind(kind, std::memory_order_release);
  });
}

std::size_t slab_bytes(const Slab* slab) {
  return std::size_t{class_infos[slab->size_class].spans} << span_shift;
}

void set_owner(const Window& window, const Slab* slab, std::uint16_t owner) {
  for_each_span(window, slab, [&](Span& span) { span.detail.store(owner, relaxed); });
}

void unlink(Slab* slab) {
  SlabList& list = *slab->list;
  (slab->previous != nullptr ? slab->previous->next : list.head) = slab->next;
  (slab->next != nullptr ? slab->next->previous : list.tail) = slab->previous;
  slab->list = nullptr;
}

void link_front(SlabList& list, Slab* slab) {
  slab->previous = nullptr;
  slab->next = list.head;
  (list.head != nullptr ? list.head->previous : list.tail) = slab;
  list.head = slab;
  slab->list = &list;
}

void link_back(SlabList& list, Slab* slab) {
  slab->next = nullptr;
  slab->previous = list.tail;
  (list.tail != nullptr ? list.tail->next : list.head) = slab;
  list.tail = slab;
  slab->list = &list;
}

bool is_owned(const Slab* slab) { return slab->list != nullptr && slab->list->owner != no_owner; }

/// Takes a slab from its list, and from the owner if it has one.
void remove_from_list(const Window& window, Slab* slab) {
  const bool owned = is_owned(slab);
  unlink(slab);
  if (owned) set_owner(window, slab, no_owner);
}

} // namespace

void free_slab(Slab* slab) { free_metadata(slab, slab_metadata_bytes(slab->blocks)); }

void forget_spans(const Window& window, const Slab* slab) {
  describe_spans(window, slab, SpanKind::none, 0);
}

void SlabClass::reset() {
  unowned_ = SlabList{};
  owners_ = nullptr;
  dirty_.store(false, relaxed);
  free_blocks_.reset();
  allocations.reset();
  frees.reset();
}

/// Gives a slab without an owner to that of a list.
void SlabClass::own(const Window& window, Slab* slab, SlabList& owned) {
  if (!owned.registered) {
    owned.registered = true;
    owned.previous = nullptr;
    owned.next = owners_;
    if (owners_ != nullptr) owners_->previous = &owned;
    owners_ = &owned;
  }
  if (slab->list != nullptr) unlink(slab);
  set_owner(window, slab, owned.owner);
  link_front(owned, slab);
}

void SlabClass::disown(const Window& window, SlabList& owned) {
  const os::LockGuard guard(lock_);
  if (!owned.registered) return;
  while (Slab* slab = owned.head) {
    remove_from_list(window, slab);
    list_unowned(slab);
  }
  (owned.previous != nullptr ? owned.previous->next : owners_) = owned.next;
  if (owned.next != nullptr) owned.next->previous = owned.previous;
  owned.registered = false;
}

/// Lists a slab that is in no list and has no owner.
void SlabClass::list_unowned(Slab* slab) {
  if (slab->free == slab->blocks) // reused last
    link_back(unowned_, slab);
  else if (slab->free > 0)
    link_front(unowned_, slab);
}

Slab* SlabClass::add_slab(const SlabSource& source, unsigned size_class) {
  const ClassInfo& info = class_infos[size_class];
  const Window& window = source.runs.window();
  bool dirty = false;
  bool guarded = false;
  const std::uint32_t first = source.allocate(info.spans, dirty, guarded);
  if (first == no_span) return nullptr;
  void* memory = allocate_metadata(slab_metadata_bytes(info.blocks));
  if (memory == nullptr) {
    source.free_unused(first, info.spans, guarded);
    return nullptr;
  }
  Slab* slab = new (memory) Slab;
  slab->start = window.span_address(first);
  slab->reciprocal = info.reciprocal;
  slab->first_span = first;
  slab->blocks = slab->free = info.blocks;
  slab->size_class = static_cast<std::uint16_t>(size_class);
  slab->canaries = source.canaries;
  slab->guarded = guarded;
  slab->purge = purges_;
  for (std::uint32_t i = 0; i < (info.blocks / vector + 1) * vector; ++i)
    new (slab->states() + i) AtomicBlockState(i >= info.blocks ? no_block
                                              : dirty          ? free_block
                                                               : zeroed);
  describe_spans(window, slab, source.arena == 0 ? SpanKind::slab : SpanKind::arena_slab,
                 source.arena);
  free_blocks_.add(info.blocks);
  link_front(unowned_, slab);
  return slab;
}

std::uint32_t SlabClass::allocate_from(Slab* slab, BlockRef* blocks, std::uint32_t wanted,
                                       BlockState state, bool& all_zeroed) {
  const std::size_t bytes = class_infos[slab->size_class].bytes;
  AtomicBlockState* states = slab->states();
  std::uint32_t got = 0;
  std::uint32_t at = slab->first_free / vector * vector;
  for (; got < wanted && at < slab->blocks; at += vector)
    for (unsigned mask = free_mask(states + at); mask != 0 && got < wanted; mask &= mask - 1) {
      const std::uint32_t index = at + static_cast<std::uint32_t>(__builtin_ctz(mask));
      if (states[index].load(relaxed) != zeroed) all_zeroed = false;
      states[index].store(state, relaxed);
      blocks[got++] = {slab->start + index * bytes, states + index};
      slab->first_free = index + 1;
    }
  slab->free -= got;
  return got;
}

Slab* SlabClass::any_with_free() {
  for (const SlabList* list = owners_; list != nullptr; list = list->next)
    if (list->head != nullptr && list->head->free > 0) return list->head;
  return nullptr;
}

/// A slab to allocate from; nullptr if there is none. Adds one only if `may_add`.
Slab* SlabClass::next_slab(const SlabSource& source, unsigned size_class, SlabList* owned,
                           bool may_add) {
  if (owned != nullptr && owned->head != nullptr && owned->head->free > 0) return owned->head;
  Slab* slab = unowned_.head;
  if (slab == nullptr) {
    if (!may_add) return nullptr;
    slab = add_slab(source, size_class);
    if (slab == nullptr) return any_with_free();
  }
  if (owned != nullptr && owned->owner != no_owner) own(source.runs.window(), slab, *owned);
  return slab;
}

std::uint32_t SlabClass::allocate(const SlabSource& source, unsigned size_class, BlockRef* blocks,
                                  std::uint32_t wanted, BlockState state, bool& all_zeroed,
                                  SlabList* owned) {
  const os::LockGuard guard(lock_);
  std::uint32_t got = 0;
  all_zeroed = true;
  while (got < wanted) {
    Slab* slab = next_slab(source, size_class, owned, got == 0);
    if (slab == nullptr) break;
    got += allocate_from(slab, blocks + got, wanted - got, state, all_zeroed);
    if (slab->free > 0) continue;
    SlabList& list = *slab->list;
    unlink(slab);
    if (list.owner != no_owner) link_back(list, slab);
  }
  free_blocks_.add(std::uint64_t{0} - got);
  if (state == live) allocations.add(got);
  for (std::uint32_t i = 0; i < got / 2; ++i)
    std::swap(blocks[i], blocks[got - 1 - i]);
  return got;
}

/// Moves a slab to where it belongs after blocks of it were freed; `before`: how many were free
/// before that.
void SlabClass::list_freed(const Window& window, Slab* slab, std::uint32_t before,
                           const SlabList* owned) {
  if (slab->detached) return;       // purge_detached() lists it again
  if (slab->free == slab->blocks) { // for all threads
    if (slab->list != nullptr) remove_from_list(window, slab);
    list_unowned(slab);
  } else if (!is_owned(slab)) {
    if (slab->list == nullptr) list_unowned(slab);
  } else if (slab->list != owned && slab->free >= slab->blocks / 2) { // its owner may need no more
    remove_from_list(window, slab);
    list_unowned(slab);
  } else if (before == 0) {
    SlabList& list = *slab->list;
    unlink(slab);
    link_front(list, slab);
  }
}

void SlabClass::free_locked(const Window& window, const BlockRef* blocks, std::uint32_t count,
                            std::uint8_t now, const SlabList* owned) {
  for (std::uint32_t i = 0; i < count;) { // blocks of the same slab often follow each other
    Slab* slab = slab_of(window.span_of(blocks[i].block));
    const std::uint32_t before = slab->free;
    const std::size_t bytes = slab_bytes(slab);
    for (; i < count && static_cast<std::size_t>(blocks[i].block - slab->start) < bytes; ++i) {
      blocks[i].state->store(free_block, relaxed);
      const auto index = static_cast<std::uint32_t>(blocks[i].state - slab->states());
      if (index < slab->first_free) slab->first_free = index;
      ++slab->free;
    }
    slab->last_use = now;
    slab->dirty = true;
    list_freed(window, slab, before, owned);
  }
  free_blocks_.add(count);
  dirty_.store(true, relaxed);
}

void SlabClass::free(const Window& window, const BlockRef* blocks, std::uint32_t count,
                     std::uint8_t now, const SlabList* owned) {
  const os::LockGuard guard(lock_);
  free_locked(window, blocks, count, now, owned);
}

void SlabClass::free_uncached(const Window& window, BlockRef block, std::uint8_t now) {
  const os::LockGuard guard(lock_);
  free_locked(window, &block, 1, now, nullptr);
  frees.add(1);
}

/// Removes slabs without live blocks from the list. Returns them chained.
Slab* SlabClass::detach_empty(const Window& window, std::uint8_t now, bool all) {
  const os::LockGuard guard(lock_);
  Slab* chain = nullptr;
  for (Slab *slab = unowned_.tail, *before = nullptr; slab != nullptr && slab->free == slab->blocks;
       slab = before) {
    before = slab->previous;
    if (!all && !old_enough(slab->last_use, now)) continue;
    unlink(slab);
    free_blocks_.add(std::uint64_t{0} - slab->blocks);
    forget_spans(window, slab);
    slab->next = chain;
    chain = slab;
  }
  return chain;
}

void SlabClass::release_empty(const SlabSource& source, std::uint8_t now, bool all) {
  for (Slab *slab = detach_empty(source.runs.window(), now, all), *next = nullptr; slab != nullptr;
       slab = next) {
    next = slab->next;
    source.free_unused(slab->first_span, class_infos[slab->size_class].spans, slab->guarded);
    free_slab(slab);
  }
}

namespace {

/// Returns whole pages inside blocks [first, end) of a slab to the system. Returns their bytes.
std::size_t discard_blocks(Slab* slab, RunAllocator& runs, std::uint32_t first, std::uint32_t end) {
  const std::size_t bytes = class_infos[slab->size_class].bytes;
  const std::size_t from = (first * bytes + os::page_bytes - 1) / os::page_bytes * os::page_bytes;
  const std::size_t to = end * bytes / os::page_bytes * os::page_bytes;
  if (to <= from || !runs.backing().anonymous) return 0;
  if (os::discard(slab->start + from, to - from) == 0) return to - from;
  runs.clear_known_zero();
  return 0;
}

/// Marks all free blocks of a slab, so that their pages can be returned without the lock. Returns
/// their number.
std::uint32_t claim_free(Slab* slab) {
  for (std::uint32_t i = 0; i < slab->blocks; ++i)
    if (AtomicBlockState& state = slab->states()[i]; state.load(relaxed) <= free_block)
      state.store(purging, relaxed);
  return std::exchange(slab->free, 0u);
}

std::size_t discard_claimed(Slab* slab, RunAllocator& runs) {
  std::size_t bytes = 0;
  for (std::uint32_t i = 0; i < slab->blocks;) {
    std::uint32_t end = i;
    while (end < slab->blocks && slab->states()[end].load(relaxed) == purging)
      ++end;
    if (end > i) bytes += discard_blocks(slab, runs, i, end);
    i = end + 1;
  }
  return bytes;
}

} // namespace

/// Removes slabs with dirty free blocks from their lists and owners to purge them, not all at a
/// time because their blocks cannot be allocated meanwhile. Returns them chained; nullptr if none
/// is left.
Slab* SlabClass::detach_partial(const Window& window, std::uint8_t now, bool all) {
  constexpr int max_count = 2048;
  const os::LockGuard guard(lock_);
  Slab* chain = nullptr;
  int count = 0;
  for (SlabList* list = &unowned_; list != nullptr;
       list = list == &unowned_ ? owners_ : list->next) {
    for (Slab *slab = list->head, *next = nullptr; slab != nullptr && slab->free > 0; slab = next) {
      next = slab->next;
      if (!slab->dirty || slab->purge == purges_ || (!all && !old_enough(slab->last_use, now)))
        continue;
      if (count++ == max_count) return chain;
      slab->purge = purges_;
      remove_from_list(window, slab);
      slab->detached = true;
      slab->next = chain;
      chain = slab;
    }
  }
  return chain;
}

std::size_t SlabClass::purge_detached(RunAllocator& runs, Slab* slab) {
  lock_.lock();
  slab->dirty = false;
  const std::uint32_t claimed = claim_free(slab);
  lock_.unlock();
  const std::size_t bytes = discard_claimed(slab, runs);
  const os::LockGuard guard(lock_);
  // Blocks of more than 32 KiB are whole pages, and zero now.
  const bool whole_pages = class_infos[slab->size_class].bytes > largest_cached_bytes;
  const BlockState now_free =
      whole_pages && runs.backing().anonymous && runs.backing().known_zero ? zeroed : free_block;
  for (std::uint32_t i = 0; i < slab->blocks; ++i)
    if (AtomicBlockState& state = slab->states()[i]; state.load(relaxed) == purging)
      state.store(now_free, relaxed);
  slab->first_free = 0;
  slab->free += claimed;
  slab->detached = false;
  list_unowned(slab);
  return bytes;
}

std::size_t SlabClass::purge(const SlabSource& source, std::uint8_t now, bool all) {
  if (!dirty_.exchange(false, relaxed)) return 0;
  const Window& window = source.runs.window();
  lock_.lock();
  ++purges_;
  lock_.unlock();
  release_empty(source, now, all);
  std::size_t bytes = 0;
  while (Slab* chain = detach_partial(window, now, all))
    for (Slab *slab = chain, *next = nullptr; slab != nullptr; slab = next) {
      next = slab->next;
      bytes += purge_detached(source.runs, slab);
    }
  const os::LockGuard guard(lock_);
  for (const SlabList* list = &unowned_; list != nullptr && !has_dirty();
       list = list == &unowned_ ? owners_ : list->next)
    for (const Slab* slab = list->head; slab != nullptr && slab->free > 0 && !has_dirty();
         slab = slab->next)
      if (slab->dirty) dirty_.store(true, relaxed);
  return bytes;
}

void free_slab_metadata(const Window& window, std::uint32_t first, std::uint32_t end) {
  for (std::uint32_t i = first; i < end; ++i) {
    Span& span = window.spans[i];
    const bool slab = span.kind() == SpanKind::slab || span.kind() == SpanKind::arena_slab;
    if (slab && span.extent.load(relaxed) == i) free_slab(slab_of(span));
  }
}

} // namespace nearfar::alloc
