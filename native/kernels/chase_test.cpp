#include "kernels/chase.hpp"

#include <algorithm>
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

TEST_CASE("one cycle passes through every node once, block by block, in the order of ranks") {
  for (const std::uint32_t blocks : {1u, 2u, 3u, 64u, 1009u})
    for (const std::size_t block_bytes :
         {std::size_t{16}, std::size_t{32}, std::size_t{64}, std::size_t{256}, std::size_t{4096}}) {
      const Region region(blocks, block_bytes, 5);
      const std::size_t nodes = kernels::nodes_in(block_bytes);
      std::vector<int> visits(blocks * nodes);
      const ChaseNode* at = region.first;
      for (std::uint64_t rank = 0; rank < blocks * nodes; ++rank) {
        CHECK(at->rank == rank);
        CHECK(region.block_of(at, block_bytes) == region.order[rank / nodes]);
        ++visits[region.block_of(at, std::min<std::size_t>(block_bytes, 64))];
        at = at->next;
      }
      CHECK(at == region.first);
      CHECK(visits == std::vector<int>(blocks * nodes, 1));
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

TEST_CASE("the loads are not optimized away: eight times the steps take far longer" *
          test::needs_idle_machine) {
  const Region region(512, 64, 7);
  const auto walk = [&](std::size_t steps) {
    return test::shortest_ns([&] { (void)kernels::chase(region.first, steps); });
  };
  constexpr std::size_t steps = 40'000;
  const auto once = walk(steps);
  CHECK(once > steps / 16); // a load that misses nothing still takes more than 1/16 ns
  CHECK(walk(8 * steps) > 3 * once);
}

TEST_CASE("parallel chains each make all their steps") {
  const Region region(1009, 64, 3);
  for (std::size_t chains = 1; chains <= kernels::max_chains; ++chains) {
    std::vector<const ChaseNode*> at(chains, region.first);
    for (std::size_t c = 0; c < chains; ++c)
      for (std::size_t k = 0; k < c; ++k)
        at[c] = at[c]->next;
    kernels::chase_side_by_side(at.data(), chains, 2500);
    for (std::size_t c = 0; c < chains; ++c)
      CHECK(at[c]->rank == (c + 2500) % 1009);
  }
}

TEST_CASE("spaced chains each make all their steps, whatever is between the loads") {
  using kernels::Spacing;
  const Region region(1009, 64, 3);
  for (const Spacing spacing : {Spacing::integers, Spacing::registers, Spacing::empty})
    for (std::size_t instructions = kernels::spacing_unit;
         instructions <= kernels::max_spacing_instructions; instructions += kernels::spacing_unit) {
      std::vector<const ChaseNode*> at(kernels::max_chains, region.first);
      kernels::chase_spaced(at.data(), spacing, instructions, 2500);
      for (const ChaseNode* node : at)
        CHECK(node->rank == 2500 % 1009);
    }
}

TEST_CASE("each load is timed and made") {
  const Region region(1009, 64, 3);
  Histogram ticks;
  CHECK(kernels::chase_timing_each(region.first, 5000, 0, ticks)->rank == 5000 % 1009);
  CHECK(ticks.total() == 5000);
  CHECK(ticks.percentile(0.5) > 0); // nothing subtracted: the timer itself takes some ticks
}
