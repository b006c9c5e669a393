#include "topo/tlb.hpp"

#include <doctest/doctest.h>

using namespace nearfar;

TEST_CASE("the levels of the TLB grow, and hold whole sets") {
  const std::vector<topo::TlbLevel> levels = topo::data_tlb(); // a hypervisor may hide them
  CHECK(levels.size() <= 2);
  unsigned before = 0;
  for (const topo::TlbLevel& level : levels) {
    CHECK(level.entries >= before);
    CHECK(level.ways > 0);
    CHECK(level.entries % level.ways == 0);
    before = level.entries;
  }
}
