#include "bench/intset.hpp"

#include <doctest/doctest.h>

#include "test_support.hpp"

using namespace nearfar;
using namespace bench;

namespace {

IntsetPlan plan(const std::string& structure, IntsetMedium medium) {
  IntsetPlan made;
  made.structure = structure;
  made.medium = medium;
  made.entries = 200;
  made.tier = *tier::parse("shm:/dev/shm");
  made.cpu = test::usable_cpu();
  return made;
}

constexpr std::uint64_t budget_ns = 2'000'000;

} // namespace

TEST_CASE("every set on every medium keeps its size, and flushes only where it must") {
  for (const std::string& structure : intset_structures())
    for (const auto medium :
         {IntsetMedium::pmem, IntsetMedium::unflushed, IntsetMedium::dram, IntsetMedium::pmdk,
          IntsetMedium::pmdk_atomic, IntsetMedium::pmdk_rp}) {
      const bool by_us = medium < IntsetMedium::pmdk;
      const bool has_one = structure == "list" || structure == "skip_list";
      if (!by_us && structure != "hash" && !(has_one && medium == IntsetMedium::pmdk)) continue;
      Result<IntsetBench> bench = IntsetBench::create(plan(structure, medium));
      REQUIRE(bool(bench));
      for (int again = 0; again < 2; ++again) {
        Result<IntsetRun> run = bench->run(budget_ns);
        REQUIRE(bool(run));
        CHECK(run->operations >= 32);
        CHECK(run->changed > 0);
        if (run->operations > 1000) { // half of operations look, half of them find
          CHECK(run->found > run->operations / 8);
          CHECK(run->found < run->operations * 3 / 8);
        }
        CHECK(run->changed < run->operations / 2);
        const bool durable = medium == IntsetMedium::pmem || medium >= IntsetMedium::pmdk;
        if (durable)
          CHECK(run->counted.fences >= run->changed);
        else
          CHECK(run->counted.fences + run->counted.lines == 0);
      }
    }
}

TEST_CASE("look-ups alone are made, and change nothing") { // run() counts what they must find
  for (const std::string& structure : intset_structures())
    for (const auto medium : {IntsetMedium::pmem, IntsetMedium::unflushed, IntsetMedium::dram}) {
      IntsetPlan wanted = plan(structure, medium);
      wanted.update_percent = 0;
      Result<IntsetBench> looked = IntsetBench::create(wanted);
      REQUIRE(bool(looked));
      Result<IntsetRun> looking = looked->run(budget_ns);
      REQUIRE(bool(looking));
      CHECK(looking->found > 0);
      CHECK(looking->changed + looking->counted.fences == 0);
    }
}

TEST_CASE("of updates alone about half change something") {
  IntsetPlan wanted = plan("hash", IntsetMedium::pmem);
  wanted.update_percent = 100;
  Result<IntsetBench> updated = IntsetBench::create(wanted);
  REQUIRE(bool(updated));
  Result<IntsetRun> updating = updated->run(budget_ns);
  REQUIRE(bool(updating));
  const auto share =
      static_cast<double>(updating->changed) / static_cast<double>(updating->operations);
  CHECK(share > 0.3);
  CHECK(share < 0.7);
}

TEST_CASE("a run of operations ends with them, and its region holds them alone") {
  struct Edges final : MeasuredRegion {
    int prepared = 0;
    int begun = 0;
    int ended = 0;
    Status prepare(std::size_t) override {
      ++prepared;
      return Done{};
    }
    void begin(std::size_t) override { begun += prepared; }
    void end(std::size_t) override { ended += begun; }
  } edges;
  Result<IntsetBench> bench = IntsetBench::create(plan("skip_list", IntsetMedium::dram));
  REQUIRE(bool(bench));
  CHECK(bench->pool().empty());
  Result<IntsetRun> run = bench->run_operations(100, &edges);
  REQUIRE(bool(run));
  CHECK(run->operations == 100);
  CHECK(edges.ended == 1);
}

TEST_CASE("sets that cannot be made are refused") {
  const auto refused = [](const IntsetPlan& wanted) {
    const Result<IntsetBench> made = IntsetBench::create(wanted);
    return !made && made.error().code == Errc::bad_input;
  };
  CHECK(refused(plan("list", IntsetMedium::pmdk_rp)));
  IntsetPlan wanted = plan("hash", IntsetMedium::pmem);
  wanted.update_percent = 101;
  CHECK(refused(wanted));
  wanted.update_percent = 50;
  wanted.entries = 0;
  CHECK(refused(wanted));
}
