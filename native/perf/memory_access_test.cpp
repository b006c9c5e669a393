#include "perf/memory_access.hpp"

#include <doctest/doctest.h>

#include "perf/ibs.hpp"
#include "perf/test_bytes.hpp"

namespace nearfar::perf {

namespace {

MemoryLevel level(std::uint64_t data_src) { return decode_data_source(data_src).level; }

constexpr std::uint64_t hit = PERF_MEM_S(LVL, HIT);

/// What the kernel writes after the length of the raw data: capabilities, then registers.
Bytes ibs_raw(std::uint32_t caps, std::uint64_t data2, std::uint64_t data3) {
  Bytes raw;
  raw.u32(caps).u64(0).u64(0x401000).u64(0).u64(data2).u64(data3).u64(0x7f001000).u64(0x1000);
  return raw;
}

constexpr std::uint32_t zen4 = 1u << 11;
constexpr std::uint64_t load_missing_l2 = 1u | 1u << 7 | 1u << 17 | 1u << 20;

MemoryLevel ibs_level(std::uint32_t caps, std::uint64_t data2, std::uint64_t data3) {
  return decode_ibs_op(ibs_raw(caps, data2, data3))->source.level;
}

} // namespace

TEST_CASE("data sources of a Skylake server mean what perf script prints for them") {
  const DataSource l1 = decode_data_source(0x10268100142); // L1 hit, TLB hit
  CHECK(l1.load);
  CHECK_FALSE(l1.store);
  CHECK(l1.level == MemoryLevel::l1);
  CHECK_FALSE(l1.tlb_miss);
  CHECK_FALSE(l1.locked);
  CHECK(level(0x11868100242) == MemoryLevel::fill_buffer);
  CHECK(level(0x10468100442) == MemoryLevel::l2);
  CHECK(level(0x10668100842) == MemoryLevel::l3);
  CHECK(decode_data_source(0x1026a100142).locked);
  CHECK(decode_data_source(0x10650100842).tlb_miss);
}

TEST_CASE("level numbers distinguish local, remote, CXL and persistent memory") {
  const std::uint64_t remote = PERF_MEM_S(REMOTE, REMOTE);
  CHECK(level(PERF_MEM_S(LVLNUM, RAM) | hit) == MemoryLevel::local_ram);
  CHECK(level(PERF_MEM_S(LVLNUM, RAM) | remote | hit) == MemoryLevel::remote_ram);
  CHECK(level(PERF_MEM_S(LVLNUM, CXL)) == MemoryLevel::cxl);
  CHECK(level(PERF_MEM_S(LVLNUM, PMEM) | remote) == MemoryLevel::pmem);
  CHECK(level(PERF_MEM_S(LVLNUM, ANY_CACHE) | remote) == MemoryLevel::remote_cache);
  CHECK(level(PERF_MEM_S(LVLNUM, ANY_CACHE) | remote | PERF_MEM_S(HOPS, 0)) ==
        MemoryLevel::other_cache);
  CHECK(level(std::uint64_t{6} << PERF_MEM_LVLNUM_SHIFT) == MemoryLevel::memory_cache);
  CHECK(is_memory(MemoryLevel::cxl));
  CHECK_FALSE(is_memory(MemoryLevel::remote_cache));
}

TEST_CASE("bits of levels are used without a number") {
  const std::uint64_t none = PERF_MEM_S(LVLNUM, NA);
  CHECK(level(none | hit | PERF_MEM_S(LVL, LOC_RAM)) == MemoryLevel::local_ram);
  CHECK(level(hit | PERF_MEM_S(LVL, REM_RAM1)) == MemoryLevel::remote_ram);
  CHECK(level(hit | PERF_MEM_S(LVL, REM_CCE2)) == MemoryLevel::remote_cache);
  CHECK(level(hit | PERF_MEM_S(LVL, L3) | PERF_MEM_S(LVL, REM_CCE1)) == MemoryLevel::other_cache);
  CHECK(level(hit | PERF_MEM_S(LVL, UNC)) == MemoryLevel::uncached);
  CHECK(level(none | PERF_MEM_S(LVL, NA)) == MemoryLevel::unknown);
  CHECK(level(0) == MemoryLevel::unknown);
  const DataSource store =
      decode_data_source(PERF_MEM_S(OP, STORE) | PERF_MEM_S(LVL, L1) | PERF_MEM_S(LVL, MISS));
  CHECK(store.store);
  CHECK(store.level == MemoryLevel::beyond_l1);
}

TEST_CASE("every level has a name") {
  CHECK(memory_level_names[static_cast<std::size_t>(MemoryLevel::l1)] == "l1");
  CHECK(memory_level_names[static_cast<std::size_t>(MemoryLevel::remote_ram)] == "remote_ram");
  CHECK(std::size(memory_level_names) == static_cast<std::size_t>(MemoryLevel::beyond_l1) + 1);
  CHECK(memory_level_names[static_cast<std::size_t>(MemoryLevel::beyond_l1)] == "beyond_l1");
}

TEST_CASE("registers of an IBS op are decoded") {
  const std::uint64_t latency = std::uint64_t{412} << 32;
  const auto op =
      decode_ibs_op(ibs_raw(zen4, 3 | 1u << 4, load_missing_l2 | 1u << 2 | 1u << 3 | latency));
  REQUIRE(op);
  CHECK(op->source.load);
  CHECK(op->source.level == MemoryLevel::remote_ram);
  CHECK(op->source.tlb_miss);
  CHECK(op->address == 0x7f001000);
  CHECK(op->miss_latency == 412);
}

TEST_CASE("data sources of IBS depend on the generation") {
  CHECK(ibs_level(zen4, 1, load_missing_l2) == MemoryLevel::l3);
  CHECK(ibs_level(zen4, 3, load_missing_l2) == MemoryLevel::local_ram);
  CHECK(ibs_level(zen4, 1u << 6, load_missing_l2) == MemoryLevel::cxl);
  CHECK(ibs_level(zen4, 5, load_missing_l2) == MemoryLevel::remote_cache);
  CHECK(ibs_level(zen4, 6, load_missing_l2) == MemoryLevel::pmem);
  CHECK(ibs_level(0, 1u << 6 | 2, load_missing_l2) == MemoryLevel::other_cache);
  CHECK(ibs_level(0, 3, load_missing_l2) == MemoryLevel::local_ram);
  CHECK(ibs_level(0, 4, load_missing_l2) == MemoryLevel::remote_cache);
}

TEST_CASE("hits, stores and other ops of IBS") {
  const std::uint64_t stale = 3; // the data source of an earlier op
  CHECK(ibs_level(zen4, stale, 1) == MemoryLevel::l1);
  CHECK(ibs_level(zen4, stale, 1u | 1u << 7) == MemoryLevel::l2);
  CHECK(ibs_level(zen4, stale, 1u | 1u << 14) == MemoryLevel::uncached);
  CHECK(ibs_level(zen4, stale, 2u | 1u << 7 | 1u << 20) == MemoryLevel::beyond_l1);
  const auto op = decode_ibs_op(ibs_raw(zen4, stale, std::uint64_t{99} << 32));
  REQUIRE(op);
  CHECK_FALSE(op->source.load);
  CHECK_FALSE(op->address);
  CHECK(op->miss_latency == 0);
  CHECK_FALSE(decode_ibs_op(Bytes().u32(zen4).u64(0)));
}

TEST_CASE("an access comes from decoded fields, else from IBS registers") {
  Sample sample;
  sample.fields = PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_RAW;
  sample.data_src = 0x10668100842;
  sample.addr = 0x1234;
  sample.weight = 70;
  const auto decoded = memory_access(sample, false);
  REQUIRE(decoded);
  CHECK(decoded->source.level == MemoryLevel::l3);
  CHECK(decoded->address == 0x1234);
  CHECK(decoded->latency_cycles == 70);
  sample.addr = 0;
  CHECK_FALSE(memory_access(sample, false)->address);
  sample.data_src = PERF_MEM_S(OP, NA);
  CHECK_FALSE(memory_access(sample, false));
  CHECK_FALSE(memory_access(sample, true)); // without raw data
  const Bytes raw = ibs_raw(zen4, 3, load_missing_l2);
  sample.raw = raw;
  CHECK(memory_access(sample, true)->source.level == MemoryLevel::local_ram);
  CHECK_FALSE(memory_access(sample, false));
}

} // namespace nearfar::perf
