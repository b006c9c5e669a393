#include "kernels/persist.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace nearfar;

namespace {
struct alignas(64) Line {
  std::byte bytes[64] = {};
};
} // namespace

TEST_CASE("every way to persist leaves its stamps in memory") {
  for (const os::Persist how : {os::Persist::ntstore, os::Persist::clwb, os::Persist::clflushopt,
                                os::Persist::clflush, os::Persist::movdir64b}) {
    if (!os::can_persist(how)) {
      MESSAGE("skipped: this processor lacks instruction ", static_cast<int>(how));
      continue;
    }
    std::vector<Line> memory(64);
    kernels::PersistLoop loop;
    loop.base = reinterpret_cast<std::byte*>(memory.data());
    loop.blocks = 16;
    loop.block_lines = 4;
    loop.blocks_per_fence = 3;
    loop.how = how;
    kernels::run_persists(loop, 500);
    CHECK(loop.stamp == 500);
    CHECK(kernels::count_stamped_after(loop, 0) == 64); // 1500 random blocks hit all 16
    const std::size_t last = kernels::count_stamped_after(loop, 499);
    CHECK(last >= 4);
    CHECK(last <= 12);
    CHECK(kernels::count_stamped_after(loop, 500) == 0);
  }
}
