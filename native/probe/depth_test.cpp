// The probes in depth: chains, single loads, mixes, load, persistence. The tests check that they do
// the work, report it, and refuse invalid input. Only cases that need an idle machine judge times.
#include <doctest/doctest.h>

#include <limits>

#include "os/cpu.hpp"
#include "probe/access.hpp"
#include "probe/latency.hpp"
#include "probe/loaded.hpp"
#include "probe/persistence.hpp"
#include "test_support.hpp"

using namespace nearfar;

namespace {
constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::uint64_t short_ns = 500'000;

tier::Spec dram() { return *tier::parse("dram"); }
} // namespace

TEST_CASE("more chains make a load cheaper beyond the caches") {
  auto latency = probe::LatencyProbe::create(dram(), 64 * mib, test::usable_cpu());
  REQUIRE(bool(latency));
  REQUIRE(bool(latency->prepare(64 * mib, 64, 1, 100'000)));
  double one = std::numeric_limits<double>::max();
  double eight = std::numeric_limits<double>::max();
  for (int i = 0; i < 5; ++i) { // the best of five: neighbors may disturb some
    auto a = latency->sample_chains(1, 2'000'000);
    auto b = latency->sample_chains(8, 2'000'000);
    REQUIRE(bool(a));
    REQUIRE(bool(b));
    one = std::min(one, a->latency_ns);
    eight = std::min(eight, b->latency_ns);
  }
  CHECK(eight < one / 2);
  CHECK_FALSE(bool(latency->sample_chains(0, short_ns)));
  CHECK_FALSE(bool(latency->sample_chains(17, short_ns)));
}

TEST_CASE("each load is timed by itself") {
  auto latency = probe::LatencyProbe::create(dram(), mib, test::usable_cpu());
  REQUIRE(bool(latency));
  CHECK_FALSE(bool(latency->time_each(100)));
  REQUIRE(bool(latency->prepare(mib, 64, 1, 10'000)));
  auto timed = latency->time_each(10'000);
  REQUIRE(bool(timed));
  CHECK(timed->ticks.total() == 10'000);
  CHECK(timed->tick_ns > 0.05);
  CHECK(timed->tick_ns < 20);
  CHECK(timed->own_ticks > 0);
}

TEST_CASE("every pattern of accesses is made, and counted in bytes") {
  const int cpu = test::usable_cpu();
  auto access = probe::AccessProbe::create(dram(), 8 * mib, {&cpu, 1});
  REQUIRE(bool(access));
  for (const auto order :
       {kernels::Order::sequential, kernels::Order::strided, kernels::Order::random})
    for (const std::size_t block : {std::size_t{64}, std::size_t{256}, std::size_t{4096}}) {
      const probe::AccessPattern pattern{order, block, 4 * block, 3, 1, false};
      auto run = access->run(pattern, {&cpu, 1}, short_ns, 1);
      REQUIRE(bool(run));
      CHECK(run->bytes % (4 * block) == 0);
      CHECK(run->bytes > 0);
      CHECK(run->seconds > 0);
    }
  CHECK_FALSE(bool(access->run({kernels::Order::random, 65, 0, 1, 0, false}, {&cpu, 1}, 1, 1)));
  CHECK_FALSE(bool(access->run({kernels::Order::random, 64, 0, 0, 0, false}, {&cpu, 1}, 1, 1)));
  CHECK_FALSE(bool(access->run({kernels::Order::strided, 64, 32, 1, 0, false}, {&cpu, 1}, 1, 1)));
}

TEST_CASE("under load, what is offered is about what is achieved, until it cannot be") {
  const std::vector<int> cpus = test::usable_cpus();
  if (cpus.size() < 2) {
    MESSAGE("skipped: latency under load needs two processors");
    return;
  }
  auto loaded = probe::LoadedProbe::create(dram(), 16 * mib, 16 * mib, cpus[0], {&cpus[1], 1}, 1);
  REQUIRE(bool(loaded));
  const probe::AccessPattern reads;
  auto idle = loaded->run(reads, 0, short_ns, 1);
  REQUIRE(bool(idle));
  CHECK(idle->traffic_bytes_per_s == 0);
  auto paced = loaded->run(reads, 50e6, 20'000'000, 1);
  REQUIRE(bool(paced));
  CHECK(paced->traffic_bytes_per_s < 60e6); // what was offered, and one burst
  CHECK_FALSE(bool(probe::LoadedProbe::create(dram(), mib, mib, cpus[0], {}, 1)));
}

TEST_CASE("traffic reaches what is offered, and more where it is not paced" *
          test::needs_idle_machine) {
  const std::vector<int> cpus = test::usable_cpus();
  REQUIRE(cpus.size() >= 2);
  auto loaded = probe::LoadedProbe::create(dram(), 16 * mib, 16 * mib, cpus[0], {&cpus[1], 1}, 1);
  REQUIRE(bool(loaded));
  const probe::AccessPattern reads;
  auto paced = loaded->run(reads, 50e6, 20'000'000, 1);
  auto unpaced = loaded->run(reads, std::numeric_limits<double>::infinity(), 5'000'000, 1);
  REQUIRE(bool(paced));
  REQUIRE(bool(unpaced));
  CHECK(paced->traffic_bytes_per_s > 10e6);
  CHECK(unpaced->traffic_bytes_per_s > paced->traffic_bytes_per_s);
}

TEST_CASE("a fence takes longer the more lines it waits for" * test::needs_idle_machine) {
  auto persistence = probe::PersistenceProbe::create(*tier::parse("shm:"), mib, test::usable_cpu());
  REQUIRE(bool(persistence));
  const auto min_fence_ns = [&](std::uint64_t block, std::uint64_t blocks) {
    double least = 1e9;
    for (int repeat = 0; repeat < 5; ++repeat) {
      auto sample = persistence->sample(os::Persist::ntstore, block, blocks, short_ns);
      REQUIRE(bool(sample));
      least = std::min(least, sample->fence_ns);
    }
    return least;
  };
  CHECK(min_fence_ns(256, 32) > min_fence_ns(64, 1)); // 128 lines against one
}

TEST_CASE("persisting is timed by fence, and refuses what cannot be") {
  auto persistence = probe::PersistenceProbe::create(*tier::parse("shm:"), mib, test::usable_cpu());
  REQUIRE(bool(persistence));
  for (const auto& [block, blocks] : {std::pair{64, 1}, std::pair{256, 32}}) {
    auto sample = persistence->sample(os::Persist::ntstore, static_cast<std::uint64_t>(block),
                                      static_cast<std::uint64_t>(blocks), short_ns);
    REQUIRE(bool(sample));
    CHECK(sample->fence_ns > 0);
  }
  CHECK_FALSE(bool(persistence->sample(os::Persist::ntstore, 100, 1, short_ns)));
  auto again = persistence->overwrite(os::Persist::ntstore, 256, 2000);
  REQUIRE(bool(again));
  CHECK(again->ticks.total() == 2000);
}

TEST_CASE("msync is timed on a file") {
  const test::Folder folder;
  auto persistence = probe::PersistenceProbe::create(
      *tier::parse(("file:" + folder.path()).c_str()), mib, test::usable_cpu());
  REQUIRE(bool(persistence));
  auto synced = persistence->sample_msync(64, short_ns);
  REQUIRE(bool(synced));
  CHECK(synced->fences >= 1);
}
