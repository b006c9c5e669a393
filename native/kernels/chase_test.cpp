#include "kernels/chase.hpp"

#include <doctest/doctest.h>
#include <vector>

#include "test_support.hpp"

using namespace nearfar;
using kernels::ChaseNode;

namespace {

struct Region {
  Region(std::uint32_t blocks, std::size_t block_bytes, std::uint64_t seed)
      : memory(blocks * block_bytes), order(blocks) {
    Random random(seed);
    first = kernels::link_cycle(memory.data(), block_bytes, order.data(), blocks, random);
  }
  std::size_t block_of(const ChaseNode* node, std::size_t block_bytes) const {
    return static_cast<std::size_t>(reinterpret_cast<const std::byte*>(node) - memory.data()) /
           block_bytes;
  }
  std::vector<std::byte> memory;
  std::vector<std::uint32_t> order;
  const ChaseNode* first = nullptr;
};

} // namespace

TEST_CASE("one cycle passes through every block once, in the order of ranks") {
  for (const std::uint32_t blocks : {1u, 2u, 3u, 64u, 1009u})
    for (const std::size_t block_bytes : {std::size_t{16}, std::size_t{64}, std::size_t{4096}}) {
      const Region region(blocks, block_bytes, 5);
      std::vector<int> visits(blocks);
      const ChaseNode* at = region.first;
      for (std::uint32_t rank = 0; rank < blocks; ++rank) {
        CHECK(at->rank == rank);
        ++visits[region.block_of(at, block_bytes)];
        at = at->next;
      }
      CHECK(at == region.first);
      CHECK(visits == std::vector<int>(blocks, 1));
    }
}

TEST_CASE("the order is that of the seed") {
  CHECK(Region(500, 64, 1).order == Region(500, 64, 1).order);
  CHECK(Region(500, 64, 1).order != Region(500, 64, 2).order);
}

TEST_CASE("every cycle is equally likely") {
  // Three blocks have two cycles: after block 0 comes 1 or 2.
  int one_follows = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const Region region(3, 64, seed);
    const auto* zero = reinterpret_cast<const ChaseNode*>(region.memory.data());
    one_follows += region.block_of(zero->next, 64) == 1;
  }
  CHECK(one_follows > 900); // 1000, standard deviation 22
  CHECK(one_follows < 1100);
}

TEST_CASE("a chase of k steps stands k ranks further") {
  constexpr std::uint32_t blocks = 1009;
  const Region region(blocks, 64, 7);
  const ChaseNode* at = region.first;
  std::size_t walked = 0;
  for (const std::size_t steps : {std::size_t{16}, std::size_t{32}, std::size_t{160'000}}) {
    at = kernels::chase(at, steps);
    walked += steps;
    CHECK(at->rank == walked % blocks);
  }
  CHECK(kernels::chase(region.first, 47)->rank == 32); // rounded down to a multiple of 16
  CHECK(kernels::chase(region.first, 15) == region.first);
}

TEST_CASE("the loads are not optimised away: eight times the steps take far longer") {
  const Region region(512, 64, 7);
  const auto walk = [&](std::size_t steps) {
    return test::shortest_ns([&] { (void)kernels::chase(region.first, steps); });
  };
  constexpr std::size_t steps = 40'000;
  const auto once = walk(steps);
  CHECK(once > steps / 16); // a load that misses nothing still takes more than 1/16 ns
  CHECK(walk(8 * steps) > 3 * once);
}
