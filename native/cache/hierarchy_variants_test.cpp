#include "cache/hierarchy_variants.hpp"

#include <doctest/doctest.h>

using namespace nearfar::cache;

namespace {

HierarchyVariants small() {
  VariantsPlan plan;
  plan.levels = {{32 << 10, 8}, {256 << 10, 16}};
  plan.tlb = {{64, 4}, {512, 8}};
  auto made = HierarchyVariants::create(plan);
  REQUIRE(made);
  return std::move(*made);
}

} // namespace

TEST_CASE("a line that was flushed is there again only where flushes keep it") {
  HierarchyVariants caches = small();
  caches.access(1 << 20, 8, Access::store);
  caches.flush(1 << 20);
  caches.forget_counts();
  caches.access(1 << 20, 8, Access::load);
  REQUIRE(caches.counts().size() == 4);
  for (const VariantCounts& counts : caches.counts()) {
    CHECK(counts.levels[0].loads() == 1);
    CHECK(counts.levels[1].load_misses() == counts.flush_evicts);
  }
}

TEST_CASE("a long access is one for each line, wherever it begins") {
  HierarchyVariants caches = small();
  caches.access((1 << 20) + 60, 136, Access::load); // 4 bytes, two lines, 4 bytes
  CHECK(caches.counts()[0].levels[0].loads() == 4);
  CHECK(caches.counts()[0].levels[1].load_misses() <= 4);
}

TEST_CASE("misses of far memory are those of its addresses") {
  HierarchyVariants caches = small();
  caches.set_far(1 << 20, 2 << 20);
  for (std::uint64_t i = 0; i < 32; ++i) { // pages apart: no streams
    caches.access((1 << 20) + i * 8192, 8, Access::load);
    caches.access((4 << 20) + i * 8192, 8, Access::load);
  }
  for (const VariantCounts& counts : caches.counts()) {
    CHECK(counts.levels.back().load_misses() == 64);
    CHECK(counts.far_load_misses == 32);
  }
}

TEST_CASE("page walks are those of the last level of the TLB, its misses those of the first") {
  HierarchyVariants caches = small();
  const auto round = [&](std::uint64_t pages) {
    for (std::uint64_t page = 0; page < pages; ++page)
      caches.access(page << 12, 8, Access::load);
  };
  round(256);
  caches.forget_counts();
  round(256); // beyond 64 entries, within 512
  CHECK(caches.tlb_misses() == 256);
  CHECK(caches.walks() == 0);
  round(4096);
  caches.forget_counts();
  round(4096);
  CHECK(caches.walks() == 4096);
}
