#include "alloclog/preload/blocks.hpp"

#include <atomic>
#include <malloc.h>

#include "alloclog/poisson.hpp"
#include "base/random.hpp"

namespace nearfar::alloclog {

namespace {

constexpr unsigned site_bits = 16;

Entry* level(std::uint64_t offset) { return reinterpret_cast<Entry*>(state.slot + offset); }

void fill(Entry* level, std::uint64_t begin, std::uint64_t end, Entry value) {
  for (std::uint64_t i = begin; i < end; ++i)
    level[i] = value;
}

constexpr std::uint64_t round_up(std::uint64_t address, unsigned bits) {
  return (address + (std::uint64_t{1} << bits) - 1) >> bits;
}

/// Sets the pages and units of a large block.
void cover(std::uint64_t address, std::uint64_t bytes, Entry value) {
  constexpr unsigned pages_bits = unit_bits - page_bits;
  const std::uint64_t end = address + bytes;
  const std::uint64_t page_begin = round_up(address, page_bits);
  const std::uint64_t page_end = round_up(end, page_bits);
  const std::uint64_t unit_begin = round_up(address, unit_bits);
  const std::uint64_t unit_end = end >> unit_bits;
  if (end >> address_bits != 0) return;
  if (unit_begin >= unit_end) return fill(level(level1_offset), page_begin, page_end, value);
  fill(level(level2_offset), unit_begin, unit_end, value);
  fill(level(level1_offset), page_begin, unit_begin << pages_bits, value);
  fill(level(level1_offset), unit_end << pages_bits, page_end, value);
}

TrackedBlock* bucket(std::uint64_t address) {
  auto* blocks = reinterpret_cast<TrackedBlock*>(state.slot + tracked_offset);
  return blocks + bucket_of(address) * bucket_blocks;
}

/// A counter at its maximum stays there: frees then search for a tracked block that may not exist.
void count_tracked(std::uint64_t address, bool more) {
  constexpr std::uint8_t full = 255;
  std::atomic_ref counter(state.tracked[filter_index(address)]);
  std::uint8_t before = counter.load(std::memory_order_relaxed);
  while (before != full && !counter.compare_exchange_weak(
                               before, static_cast<std::uint8_t>(more ? before + 1 : before - 1),
                               std::memory_order_relaxed)) {
  }
}

/// Removes the entries of earlier blocks that began inside a block. Another block may begin in its
/// last granule, and be entered concurrently.
[[gnu::always_inline]] inline void clear_inside(std::uint64_t address, std::uint64_t end) {
  constexpr std::uint64_t half = std::uint64_t{1} << (granule_bits - 1);
  const std::uint64_t whole_end = end >> granule_bits;
  const Entry freed = state.freed;
  std::uint64_t granule = (address >> granule_bits) + 1;
  for (; granule < whole_end; ++granule)
    state.level0[granule] = freed;
  const std::uint64_t within = end - (whole_end << granule_bits);
  if (granule != whole_end || within == 0) return;
  std::atomic_ref last(state.level0[whole_end]);
  Entry before = last.load(std::memory_order_relaxed);
  const std::uint64_t begin = (before & half_bit) != 0 ? half : 0;
  if (before != freed && begin < within) [[unlikely]]
    last.compare_exchange_strong(before, freed, std::memory_order_relaxed);
}

/// The same of a large block, for its first and last page: between them, its pages are known by
/// level 1 and 2.
void clear_ends(std::uint64_t address, std::uint64_t end) {
  const std::uint64_t last_page = end >> page_bits << page_bits;
  clear_inside(address, round_up(address + 1, page_bits) << page_bits);
  clear_inside(last_page - 1, end); // with the first granule of the page
}

/// Records a block; false if its bucket is full.
bool track(std::uint64_t address, std::size_t bytes, Entry site) {
  TrackedBlock* blocks = bucket(address);
  for (std::size_t i = 0; i < bucket_blocks; ++i) {
    std::uint64_t free = 0;
    if (!std::atomic_ref(blocks[i].address).compare_exchange_strong(free, address)) continue;
    blocks[i].site_and_bytes = std::uint64_t{bytes} << site_bits | site;
    count_tracked(address, true);
    return true;
  }
  std::atomic_ref(header().lost_tracked).fetch_add(1, std::memory_order_relaxed);
  return false;
}

struct Removed {
  std::uint64_t bytes = 0;
  Entry site = 0; ///< 0: the block was not tracked
};

Removed untrack(std::uint64_t address) {
  Removed removed;
  TrackedBlock* blocks = bucket(address);
  for (std::size_t i = 0; i < bucket_blocks; ++i) {
    std::atomic_ref at(blocks[i].address);
    const std::uint64_t found = at.load(std::memory_order_relaxed);
    if (found != address) continue;
    removed.bytes = blocks[i].site_and_bytes >> site_bits;
    removed.site = static_cast<Entry>(blocks[i].site_and_bytes & site_mask);
    at.store(0, std::memory_order_release);
    count_tracked(address, false);
  }
  return removed;
}

void add_live(SiteRecord& site, std::int64_t bytes) {
  const std::int64_t live =
      std::atomic_ref(site.live_bytes).fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::atomic_ref peak(site.peak_live_bytes);
  std::int64_t before = peak.load(std::memory_order_relaxed);
  while (before < live && !peak.compare_exchange_weak(before, live, std::memory_order_relaxed)) {
  }
}

/// Tracks a block whose entry is set.
void enter_live(std::uint64_t address, std::size_t bytes, Entry entry) {
  const auto site = static_cast<Entry>(entry & site_mask);
  if (!track(address, bytes, site)) return;
  add_live(site_record(site), static_cast<std::int64_t>(weight_of(bytes).bytes));
  if (bytes >= large_bytes) cover(address, bytes, site);
}

std::int64_t draw_distance(ThreadState& thread) {
  thread.random = next_mmix(thread.random);
  return next_distance(thread.random);
}

/// Whether the block that was just subtracted from the distance is sampled; if so, draws the next
/// distance.
bool is_sampled(ThreadState& thread, std::size_t bytes) {
  if (thread.random == 0) { // the first block of a thread
    thread.random =
        hash_with(reinterpret_cast<std::uintptr_t>(&thread), __builtin_ia32_rdtsc()) | 1;
    thread.distance = draw_distance(thread) - static_cast<std::int64_t>(bytes);
  }
  if (thread.distance >= 0) return false;
  thread.distance = draw_distance(thread);
  return true;
}

/// Enters a block that may be large or sampled.
[[gnu::noinline]] void* enter_tracked(void* block, std::size_t bytes, Entry site) {
  const auto address = reinterpret_cast<std::uint64_t>(block);
  const auto begin = static_cast<Entry>(site | half_of(address));
  state.level0[address >> granule_bits] = begin;
  if (bytes >= large_bytes)
    clear_ends(address, address + bytes);
  else
    clear_inside(address, address + bytes);
  if (bytes < large_bytes && !is_sampled(thread_state, bytes)) return block;
  const Weight weight = weight_of(bytes);
  SiteRecord& record = site_record(site);
  std::atomic_ref(record.allocations).fetch_add(weight.allocations, std::memory_order_relaxed);
  std::atomic_ref(record.allocated_bytes).fetch_add(weight.bytes, std::memory_order_relaxed);
  enter_live(address, bytes, begin);
  return block;
}

[[gnu::always_inline]] inline void* enter_at(void* block, std::size_t bytes, Entry site) {
  if (bytes >= large_bytes) [[unlikely]]
    return enter_tracked(block, bytes, site);
  ThreadState& thread = thread_state;
  thread.distance -= static_cast<std::int64_t>(bytes);
  if (thread.distance < 0) [[unlikely]]
    return enter_tracked(block, bytes, site);
  const auto address = reinterpret_cast<std::uint64_t>(block);
  state.level0[address >> granule_bits] = static_cast<Entry>(site | half_of(address));
  clear_inside(address, address + bytes);
  return block;
}

[[gnu::noinline]] void* enter_after_search(void* block, std::size_t bytes, CallSite call) {
  return enter_at(block, bytes, find_site(call));
}

} // namespace

void* enter(void* block, std::size_t bytes, CallSite call) {
  const auto address = reinterpret_cast<std::uint64_t>(block);
  if (!is_logged(address)) [[unlikely]]
    return block;
  // Stores that miss wait for each other: the line is fetched while the site is looked up.
  __builtin_prefetch(state.level0 + (address >> granule_bits), 1);
  const Entry site = known_site(call);
  if (site == 0) [[unlikely]]
    return enter_after_search(block, bytes, call);
  return enter_at(block, bytes, site);
}

void* enter_resized(void* block, std::size_t bytes, Entry site, std::size_t tracked_bytes) {
  if (!is_logged(reinterpret_cast<std::uint64_t>(block))) [[unlikely]]
    return block;
  if (tracked_bytes != 0) { // what of the block was counted before
    const Weight before = weight_of(tracked_bytes);
    const double kept = bytes < tracked_bytes
                            ? static_cast<double>(bytes) / static_cast<double>(tracked_bytes)
                            : 1.0;
    const auto again = static_cast<std::uint64_t>(kept * static_cast<double>(before.bytes));
    SiteRecord& record = site_record(site);
    std::atomic_ref(record.allocations).fetch_sub(before.allocations, std::memory_order_relaxed);
    std::atomic_ref(record.allocated_bytes).fetch_sub(again, std::memory_order_relaxed);
  }
  return enter_at(block, bytes, site);
}

[[gnu::noinline]] TakenBlock remove_written(std::uint64_t address, std::size_t usable_bytes) {
  Entry& entry = state.level0[address >> granule_bits];
  const Removed removed = untrack(address);
  if (removed.site != 0) {
    add_live(site_record(removed.site), -static_cast<std::int64_t>(weight_of(removed.bytes).bytes));
    if (removed.bytes >= large_bytes) cover(address, removed.bytes, removed.site | freed_bit);
  } else if (entry == 0 && state.freed != 0) { // the parent's
    const std::size_t bytes =
        usable_bytes != 0 ? usable_bytes : malloc_usable_size(reinterpret_cast<void*>(address));
    if (bytes >= large_bytes) cover(address, bytes, state.freed);
  }
  const Entry before = entry;
  entry = removed.site != 0 ? static_cast<Entry>(before | freed_bit) : state.freed;
  return {true, before, removed.bytes};
}

void restore(std::uint64_t address, TakenBlock taken) {
  if (!taken.was_written) return;
  state.level0[address >> granule_bits] = taken.entry;
  if (taken.bytes != 0) enter_live(address, taken.bytes, taken.entry);
}

} // namespace nearfar::alloclog
