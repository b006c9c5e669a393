// Levels that served a sampled memory access, from PERF_SAMPLE_DATA_SRC.
//
// Source         union perf_mem_data_src of include/uapi/linux/perf_event.h, Linux 6.1 to 6.18: the
//                level number where the kernel gives one, else the older bits of levels.
// Hardware       checked against `perf script` on public samples of a Skylake server (load latency
//                event); not validated on hardware by nearfar: the machines it was developed on are
//                virtual and have no such events.
// Thread safety  values, no shared state.
#pragma once

#include <cstdint>
#include <string_view>

namespace nearfar::perf {

/// Names are in memory_level_names, in this order.
enum class MemoryLevel : std::uint8_t {
  unknown,
  l1,
  fill_buffer, ///< a miss of this line was already outstanding: its own source is not known
  l2,
  l3,
  l4,
  other_cache,  ///< of another core on this node, or which one is not known
  remote_cache, ///< of another node
  memory_cache, ///< on the side of the memory
  local_ram,
  remote_ram,
  cxl,
  pmem,
  io,
  uncached,
  beyond_l1, ///< a miss of the L1 cache, no more is known: stores of some processors
};
inline constexpr std::string_view memory_level_names[] = {
    "unknown",      "l1",        "fill_buffer", "l2",  "l3",   "l4", "other_cache", "remote_cache",
    "memory_cache", "local_ram", "remote_ram",  "cxl", "pmem", "io", "uncached",    "beyond_l1"};

struct DataSource {
  bool load = false;
  bool store = false;
  bool tlb_miss = false; ///< of all levels of the TLB: a page walk
  bool locked = false;
  MemoryLevel level = MemoryLevel::unknown;
};

DataSource decode_data_source(std::uint64_t data_src);

/// Whether the data came from memory of any kind rather than from a cache.
constexpr bool is_memory(MemoryLevel level) {
  return level == MemoryLevel::local_ram || level == MemoryLevel::remote_ram ||
         level == MemoryLevel::cxl || level == MemoryLevel::pmem;
}

} // namespace nearfar::perf
