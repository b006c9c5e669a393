// Replaces the statistics functions of glibc: all tiers together.
#include <cerrno>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <malloc.h>

#include <nearfar/hmalloc.h>

#include "alloc/allocator.hpp"
#include "alloc/stats.hpp"

#define NEARFAR_EXPORT __attribute__((visibility("default"), used))

using namespace nearfar;
using namespace nearfar::alloc;

namespace {

/// A tier, or all of them, in the terms of mallinfo(3): large blocks are "mmapped", all others are
/// in an arena.
struct Totals {
  std::size_t arena = 0, mapped_blocks = 0, mapped_bytes = 0, used = 0, free = 0, returnable = 0;
};

void add_tier(Totals& totals, unsigned tier) {
  TierHeap& heap = process_allocator.tiers[tier];
  hm_tier_stats stats;
  const std::size_t mapped = read_stats(process_allocator, tier, stats);
  const std::size_t arena = stats.span_bytes > mapped ? stats.span_bytes - mapped : 0;
  const std::size_t used = stats.live_bytes - mapped;
  totals.arena += arena;
  totals.mapped_blocks += heap.large_allocations.get() - heap.large_frees.get();
  totals.mapped_bytes += mapped;
  totals.used += used;
  totals.free += arena > used ? arena - used : 0;
  totals.returnable += heap.runs.free_dirty_spans() << span_shift;
}

Totals totals_of_all() {
  Totals totals;
  for (unsigned t = 0; t < tier_count; ++t)
    if (process_allocator.tiers[t].ready()) add_tier(totals, t);
  return totals;
}

int clamped(std::size_t value) { return value > INT_MAX ? INT_MAX : static_cast<int>(value); }

void write_xml(std::FILE* file, const Totals& t) {
  std::fprintf(file,
               "<total type=\"fast\" count=\"0\" size=\"0\"/>\n"
               "<total type=\"rest\" count=\"%d\" size=\"%zu\"/>\n"
               "<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>\n"
               "<system type=\"current\" size=\"%zu\"/>\n"
               "<system type=\"max\" size=\"%zu\"/>\n"
               "<aspace type=\"total\" size=\"%zu\"/>\n"
               "<aspace type=\"mprotect\" size=\"%zu\"/>\n",
               t.free > 0 ? 1 : 0, t.free, t.mapped_blocks, t.mapped_bytes, t.arena, t.arena,
               t.arena, t.arena);
}

} // namespace

extern "C" {

/// Returns all free memory; `pad` has no effect, because an arena has no top here.
NEARFAR_EXPORT int malloc_trim(std::size_t) noexcept {
  std::size_t bytes = 0;
  for (unsigned t = 0; t < tier_count; ++t)
    if (process_allocator.tiers[t].ready()) bytes += hm_trim(static_cast<hm_tier>(t));
  return bytes > 0 ? 1 : 0;
}

NEARFAR_EXPORT struct mallinfo2 mallinfo2() noexcept {
  const Totals totals = totals_of_all();
  struct mallinfo2 info {};
  info.arena = totals.arena;
  info.ordblks = totals.free > 0 ? 1 : 0;
  info.hblks = totals.mapped_blocks;
  info.hblkhd = totals.mapped_bytes;
  info.uordblks = totals.used;
  info.fordblks = totals.free;
  info.keepcost = totals.returnable;
  return info;
}

/// Values that do not fit into an int are clamped.
NEARFAR_EXPORT struct mallinfo mallinfo() noexcept {
  const struct mallinfo2 wide = mallinfo2();
  struct mallinfo info {};
  info.arena = clamped(wide.arena);
  info.ordblks = clamped(wide.ordblks);
  info.hblks = clamped(wide.hblks);
  info.hblkhd = clamped(wide.hblkhd);
  info.uordblks = clamped(wide.uordblks);
  info.fordblks = clamped(wide.fordblks);
  info.keepcost = clamped(wide.keepcost);
  return info;
}

NEARFAR_EXPORT void malloc_stats() noexcept {
  constexpr int standard_error = 2;
  const int code = errno;
  write_stats(process_allocator, standard_error);
  errno = code;
}

NEARFAR_EXPORT int malloc_info(int options, std::FILE* file) noexcept {
  if (options != 0) return EINVAL;
  std::fputs("<malloc version=\"1\">\n", file);
  for (unsigned t = 0; t < tier_count; ++t) {
    if (!process_allocator.tiers[t].ready()) continue;
    Totals totals;
    add_tier(totals, t);
    std::fprintf(file, "<heap nr=\"%u\">\n<sizes>\n</sizes>\n", t);
    write_xml(file, totals);
    std::fputs("</heap>\n", file);
  }
  write_xml(file, totals_of_all());
  std::fputs("</malloc>\n", file);
  return 0;
}

} // extern "C"
