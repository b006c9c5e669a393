#include "alloc/slabs.hpp"

#include <emmintrin.h>
#include <new>
#include <utility>

#include "alloc/metadata.hpp"
#include "os/address_space.hpp"

namespace nearfar::alloc {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr std::uint32_t vector = 16; ///< states looked at at once

std::size_t slab_metadata_bytes(std::uint32_t blocks) {
  return sizeof(Slab) + (blocks / vector + 1) * vector;
}

#if defined(__SANITIZE_THREAD__)
unsigned free_mask(const AtomicState* states) { // one by one, for a vector load is no atomic one
  unsigned mask = 0;
  for (unsigned i = 0; i < vector; ++i)
    if (states[i].load(relaxed) <= free_block) mask |= 1u << i;
  return mask;
}
#else
/// A bit for each of 16 states that may be handed out. Owners may write other states meanwhile,
/// never one of these.
unsigned free_mask(const AtomicState* states) {
  const __m128i v = _mm_load_si128(reinterpret_cast<const __m128i*>(states));
  return static_cast<unsigned>(_mm_movemask_epi8(_mm_cmplt_epi8(v, _mm_set1_epi8(free_block + 1))));
}
#endif

void describe_spans(const Slab* slab, std::uint32_t spans, SpanKind kind) {
  for (std::uint32_t i = 0; i < spans; ++i) {
    Span& span = geometry.spans[slab->first_span + i];
    span.word.store(reinterpret_cast<std::uintptr_t>(slab + 1), relaxed);
    span.extent.store(slab->first_span, relaxed);
    span.size_class.store(static_cast<std::uint8_t>(slab->size_class), relaxed);
    span.kind.store(static_cast<std::uint8_t>(kind), std::memory_order_release);
  }
}

} // namespace

Slab* slab_of(const std::byte* block) {
  const Span& span = geometry.spans[offset_of(block) >> span_shift];
  return reinterpret_cast<Slab*>(span.word.load(relaxed)) - 1;
}

void SlabClass::link_front(Slab* slab) {
  slab->previous = nullptr;
  slab->next = head_;
  (head_ != nullptr ? head_->previous : tail_) = slab;
  head_ = slab;
  slab->listed = true;
}

void SlabClass::link_back(Slab* slab) {
  slab->next = nullptr;
  slab->previous = tail_;
  (tail_ != nullptr ? tail_->next : head_) = slab;
  tail_ = slab;
  slab->listed = true;
}

void SlabClass::unlink(Slab* slab) {
  (slab->previous != nullptr ? slab->previous->next : head_) = slab->next;
  (slab->next != nullptr ? slab->next->previous : tail_) = slab->previous;
  slab->listed = false;
}

void SlabClass::reset() {
  head_ = tail_ = nullptr;
  dirty_.store(false, relaxed);
  free_blocks_.reset();
  allocations.reset();
  frees.reset();
}

Slab* SlabClass::add_slab(Runs& runs, unsigned size_class) {
  const ClassInfo& info = class_infos[size_class];
  bool dirty = false;
  const std::uint32_t first = runs.take(info.spans, 1, dirty);
  if (first == no_span) return nullptr;
  void* memory = take_metadata(slab_metadata_bytes(info.blocks));
  if (memory == nullptr) {
    runs.give_back_unused(first, info.spans);
    return nullptr;
  }
  Slab* slab = new (memory) Slab;
  slab->start = span_address(first);
  slab->first_span = first;
  slab->blocks = slab->free = info.blocks;
  slab->size_class = static_cast<std::uint16_t>(size_class);
  for (std::uint32_t i = 0; i < (info.blocks / vector + 1) * vector; ++i)
    new (slab->states() + i) AtomicState(i >= info.blocks ? no_block : dirty ? free_block : fresh);
  describe_spans(slab, info.spans, SpanKind::slab);
  free_blocks_.add(info.blocks);
  link_front(slab);
  return slab;
}

std::uint32_t SlabClass::take_from(Slab* slab, Slot* slots, std::uint32_t wanted, State mark,
                                   bool& fresh_all) {
  const std::size_t bytes = class_infos[slab->size_class].bytes;
  AtomicState* states = slab->states();
  std::uint32_t got = 0;
  std::uint32_t at = slab->lowest / vector * vector;
  for (; got < wanted && at < slab->blocks; at += vector)
    for (unsigned mask = free_mask(states + at); mask != 0 && got < wanted; mask &= mask - 1) {
      const std::uint32_t index = at + static_cast<std::uint32_t>(__builtin_ctz(mask));
      if (states[index].load(relaxed) != fresh) fresh_all = false;
      states[index].store(mark, relaxed);
      slots[got++] = {slab->start + index * bytes, states + index};
      slab->lowest = index + 1;
    }
  slab->free -= got;
  return got;
}

std::uint32_t SlabClass::take(Runs& runs, unsigned size_class, Slot* slots, std::uint32_t wanted,
                              State mark, bool& was_fresh) {
  const os::LockGuard guard(lock_);
  std::uint32_t got = 0;
  was_fresh = true;
  while (got < wanted) {
    Slab* slab = head_;
    if (slab == nullptr && (got > 0 || (slab = add_slab(runs, size_class)) == nullptr)) break;
    got += take_from(slab, slots + got, wanted - got, mark, was_fresh);
    if (slab->free == 0) unlink(slab);
  }
  free_blocks_.add(std::uint64_t{0} - got);
  if (mark == live) allocations.add(got);
  for (std::uint32_t i = 0; i < got / 2; ++i)
    std::swap(slots[i], slots[got - 1 - i]);
  return got;
}

void SlabClass::give_back(const Slot* slots, std::uint32_t count, std::uint8_t now, bool direct) {
  const os::LockGuard guard(lock_);
  for (std::uint32_t i = 0; i < count; ++i) {
    Slab* slab = slab_of(slots[i].block);
    slots[i].state->store(free_block, relaxed);
    const auto index = static_cast<std::uint32_t>(slots[i].state - slab->states());
    if (index < slab->lowest) slab->lowest = index;
    slab->stamp = now;
    slab->dirty = true;
    ++slab->free;
    if (slab->held) continue;         // purge_held() puts it where it belongs
    if (slab->free == slab->blocks) { // the last to be used again
      if (slab->listed) unlink(slab);
      link_back(slab);
    } else if (!slab->listed) {
      link_front(slab);
    }
  }
  free_blocks_.add(count);
  if (direct) frees.add(count);
  dirty_.store(true, relaxed);
}

/// Takes slabs without a block in use out of the list, chained.
Slab* SlabClass::take_empty(std::uint8_t now, bool all) {
  const os::LockGuard guard(lock_);
  Slab* chain = nullptr;
  for (Slab *slab = tail_, *before = nullptr; slab != nullptr && slab->free == slab->blocks;
       slab = before) {
    before = slab->previous;
    if (!all && !old_enough(slab->stamp, now)) continue;
    unlink(slab);
    free_blocks_.add(std::uint64_t{0} - slab->blocks);
    describe_spans(slab, class_infos[slab->size_class].spans, SpanKind::none);
    slab->next = chain;
    chain = slab;
  }
  return chain;
}

void SlabClass::release_empty(Runs& runs, std::uint8_t now, bool all) {
  for (Slab *slab = take_empty(now, all), *next = nullptr; slab != nullptr; slab = next) {
    next = slab->next;
    runs.give_back_unused(slab->first_span, class_infos[slab->size_class].spans);
    return_metadata(slab, slab_metadata_bytes(slab->blocks));
  }
}

namespace {

/// Whole pages inside blocks [first, end) of a slab are given back. Returns their bytes.
std::size_t discard_blocks(Slab* slab, Runs& runs, std::uint32_t first, std::uint32_t end) {
  const std::size_t bytes = class_infos[slab->size_class].bytes;
  const std::size_t from = (first * bytes + os::page_bytes - 1) / os::page_bytes * os::page_bytes;
  const std::size_t to = end * bytes / os::page_bytes * os::page_bytes;
  if (to <= from || !runs.medium().anonymous) return 0;
  if (os::discard(slab->start + from, to - from) == 0) return to - from;
  runs.forget_zeros();
  return 0;
}

/// Claims all free blocks of a slab, so that its pages can be given back without the lock. Returns
/// how many.
std::uint32_t claim_free(Slab* slab) {
  for (std::uint32_t i = 0; i < slab->blocks; ++i)
    if (AtomicState& state = slab->states()[i]; state.load(relaxed) <= free_block)
      state.store(purging, relaxed);
  return std::exchange(slab->free, 0u);
}

std::size_t discard_claimed(Slab* slab, Runs& runs) {
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

/// Takes slabs with written free blocks out of the list, to be purged; a few at a time, for what
/// they have cannot be handed out meanwhile. `from` is where the walk goes on: only a purge ends a
/// slab, so that it is valid, but it may have left the list.
Slab* SlabClass::hold_partial(Slab*& from, std::uint8_t now, bool all) {
  constexpr int most = 256;
  const os::LockGuard guard(lock_);
  Slab* chain = nullptr;
  int count = 0;
  Slab* slab = from != nullptr && from->listed ? from : head_;
  while (slab != nullptr && count < most) {
    Slab* next = slab->next;
    if (slab->dirty && (all || old_enough(slab->stamp, now))) {
      unlink(slab);
      slab->held = true;
      slab->next = chain;
      chain = slab;
      ++count;
    }
    slab = next;
  }
  from = slab;
  return chain;
}

std::size_t SlabClass::purge_held(Runs& runs, Slab* slab) {
  lock_.lock();
  slab->dirty = false;
  const std::uint32_t claimed = claim_free(slab);
  lock_.unlock();
  const std::size_t bytes = discard_claimed(slab, runs);
  const os::LockGuard guard(lock_);
  // Blocks of more than 32 KiB are whole pages, and zero now.
  const bool whole_pages = class_infos[slab->size_class].bytes > largest_cached_bytes;
  const State now_free =
      whole_pages && runs.medium().anonymous && runs.medium().known_zero ? fresh : free_block;
  for (std::uint32_t i = 0; i < slab->blocks; ++i)
    if (AtomicState& state = slab->states()[i]; state.load(relaxed) == purging)
      state.store(now_free, relaxed);
  slab->lowest = 0;
  slab->free += claimed;
  slab->held = false;
  if (slab->free == slab->blocks)
    link_back(slab);
  else
    link_front(slab);
  return bytes;
}

std::size_t SlabClass::purge(Runs& runs, std::uint8_t now, bool all) {
  if (!dirty_.exchange(false, relaxed)) return 0;
  release_empty(runs, now, all);
  std::size_t bytes = 0;
  Slab* from = nullptr;
  do {
    for (Slab *slab = hold_partial(from, now, all), *next = nullptr; slab != nullptr; slab = next) {
      next = slab->next;
      bytes += purge_held(runs, slab);
    }
  } while (from != nullptr);
  const os::LockGuard guard(lock_);
  for (const Slab* slab = head_; slab != nullptr && !has_dirty(); slab = slab->next)
    if (slab->dirty) dirty_.store(true, relaxed);
  return bytes;
}

} // namespace nearfar::alloc
