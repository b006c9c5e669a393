#include "perf/data_source.hpp"

#include <linux/perf_event.h>

namespace nearfar::perf {

namespace {

/// Level numbers that the headers of Debian 12 lack.
enum : unsigned { lvlnum_l2_mhb = 5, lvlnum_msc = 6, lvlnum_l0 = 7, lvlnum_unc = 8 };

MemoryLevel by_number(unsigned number, bool remote) {
  switch (number) {
  case lvlnum_l0:
  case PERF_MEM_LVLNUM_L1: return MemoryLevel::l1;
  case lvlnum_l2_mhb:
  case PERF_MEM_LVLNUM_LFB: return MemoryLevel::fill_buffer;
  case PERF_MEM_LVLNUM_L2: return MemoryLevel::l2;
  case PERF_MEM_LVLNUM_L3: return remote ? MemoryLevel::remote_cache : MemoryLevel::l3;
  case PERF_MEM_LVLNUM_L4: return remote ? MemoryLevel::remote_cache : MemoryLevel::l4;
  case PERF_MEM_LVLNUM_ANY_CACHE:
    return remote ? MemoryLevel::remote_cache : MemoryLevel::other_cache;
  case lvlnum_msc: return MemoryLevel::memory_cache;
  case PERF_MEM_LVLNUM_RAM: return remote ? MemoryLevel::remote_ram : MemoryLevel::local_ram;
  case PERF_MEM_LVLNUM_CXL: return MemoryLevel::cxl;
  case PERF_MEM_LVLNUM_PMEM: return MemoryLevel::pmem;
  case PERF_MEM_LVLNUM_IO: return MemoryLevel::io;
  case lvlnum_unc: return MemoryLevel::uncached;
  default: return MemoryLevel::unknown;
  }
}

/// The farthest of the levels whose bits are set.
MemoryLevel by_bits(std::uint64_t bits) {
  struct Meaning {
    std::uint64_t bits;
    MemoryLevel level;
  };
  constexpr Meaning meanings[] = {
      {PERF_MEM_LVL_UNC, MemoryLevel::uncached},
      {PERF_MEM_LVL_IO, MemoryLevel::io},
      {PERF_MEM_LVL_REM_RAM1 | PERF_MEM_LVL_REM_RAM2, MemoryLevel::remote_ram},
      {PERF_MEM_LVL_LOC_RAM, MemoryLevel::local_ram},
      {PERF_MEM_LVL_REM_CCE1 | PERF_MEM_LVL_REM_CCE2, MemoryLevel::remote_cache},
      {PERF_MEM_LVL_L3, MemoryLevel::l3},
      {PERF_MEM_LVL_L2, MemoryLevel::l2},
      {PERF_MEM_LVL_LFB, MemoryLevel::fill_buffer},
      {PERF_MEM_LVL_L1, MemoryLevel::l1},
  };
  constexpr std::uint64_t on_node = PERF_MEM_LVL_L3 | PERF_MEM_LVL_REM_CCE1; // AMD before Zen 4
  if ((bits & on_node) == on_node) return MemoryLevel::other_cache;
  for (const Meaning& meaning : meanings)
    if ((bits & meaning.bits) != 0) return meaning.level;
  return MemoryLevel::unknown;
}

/// The level of an access that is only known to have missed one.
MemoryLevel missed(MemoryLevel level) {
  return level == MemoryLevel::l1 ? MemoryLevel::beyond_l1 : MemoryLevel::unknown;
}

} // namespace

DataSource decode_data_source(std::uint64_t data_src) {
  perf_mem_data_src source{};
  source.val = data_src;
  DataSource decoded;
  decoded.load = (source.mem_op & PERF_MEM_OP_LOAD) != 0;
  decoded.store = (source.mem_op & PERF_MEM_OP_STORE) != 0;
  decoded.locked = (source.mem_lock & PERF_MEM_LOCK_LOCKED) != 0;
  decoded.tlb_miss = (source.mem_dtlb & PERF_MEM_TLB_MISS) != 0;
  const unsigned number = source.mem_lvl_num;
  const bool numbered = number != 0 && number != PERF_MEM_LVLNUM_NA;
  const bool remote = source.mem_remote != 0 && source.mem_hops != PERF_MEM_HOPS_0;
  decoded.level = numbered ? by_number(number, remote) : by_bits(source.mem_lvl);
  const bool hit = (source.mem_lvl & PERF_MEM_LVL_HIT) != 0;
  if (!hit && (source.mem_lvl & PERF_MEM_LVL_MISS) != 0 && !is_memory(decoded.level))
    decoded.level = missed(decoded.level);
  return decoded;
}

} // namespace nearfar::perf
