#include "bench/map.hpp"

#include <algorithm>
#include <doctest/doctest.h>

#include "bench/map_keys.hpp"
#include "bench/pmdk_primitives.hpp"
#include "test_support.hpp"

using namespace nearfar;
using namespace bench;

namespace {

constexpr MapType types[] = {MapType::map, MapType::dram, MapType::map_atomic, MapType::map_tx,
                             MapType::map_rp};

MapPlan plan(MapType type, MapOperation operation, std::uint64_t operations) {
  MapPlan made;
  made.type = type;
  made.operation = operation;
  made.operations = operations;
  made.tier = *tier::parse(type == MapType::dram ? "dram" : "shm:/dev/shm");
  made.cpus = {test::usable_cpu()};
  return made;
}

MapRun run(const MapPlan& wanted, MapPass pass) {
  Result<MapBench> bench = MapBench::create(wanted);
  REQUIRE(bool(bench));
  Result<MapRun> done = bench->run(pass);
  REQUIRE(bool(done));
  return std::move(*done);
}

} // namespace

TEST_CASE("keys are pmembench's, and a shuffle visits each once") {
  std::uint32_t seed = 1;
  std::vector<std::uint64_t> keys = draw_keys(1000, seed);
  unsigned glibc_seed = 1;
  for (const std::uint64_t key : keys) {
    const auto low = static_cast<std::uint64_t>(rand_r(&glibc_seed));
    const auto high = static_cast<std::uint64_t>(rand_r(&glibc_seed));
    REQUIRE(key == (high << 32 | low));
  }
  std::vector<std::uint64_t> order = shuffled(keys, seed);
  CHECK(order != keys);
  std::sort(order.begin(), order.end());
  std::sort(keys.begin(), keys.end());
  CHECK(order == keys);
}

TEST_CASE("the maps after PMDK have counterparts in DRAM, which flush nothing") {
  for (const MapType type : {MapType::map_atomic, MapType::map_tx, MapType::map_rp})
    for (const MapOperation op : {MapOperation::insert, MapOperation::get, MapOperation::remove}) {
      MapPlan wanted = plan(type, op, 3000);
      wanted.tier = *tier::parse("dram");
      Result<MapBench> bench = MapBench::create(wanted);
      REQUIRE(bool(bench));
      CHECK(bench->pool().empty());
      Result<MapRun> done = bench->run(MapPass::whole);
      REQUIRE(bool(done));
      CHECK(done->seconds > 0);
      CHECK(done->counted.fences + done->counted.lines == 0);
      wanted.value_bytes = 9;
      CHECK(MapBench::create(wanted).error().code == Errc::bad_input);
    }
}

TEST_CASE("every operation on every map is done, timed and counted") {
  for (const MapType type : types)
    for (const std::uint64_t value_bytes : {8u, 100u})
      for (const MapOperation op :
           {MapOperation::insert, MapOperation::get, MapOperation::remove}) {
        MapPlan wanted = plan(type, op, 3000);
        wanted.value_bytes = value_bytes;
        const MapRun whole = run(wanted, MapPass::whole);
        CHECK(whole.seconds > 0);
        const MapRun each = run(wanted, MapPass::each);
        CHECK(each.min_ns <= each.percentiles_ns.front());
        CHECK(std::is_sorted(each.percentiles_ns.begin(), each.percentiles_ns.end()));
        CHECK(each.percentiles_ns.back() <= each.largest_ns);
        CHECK(each.mean_ns >= each.min_ns);
        CHECK(each.worst_cpu_ns > 0);
        CHECK(each.counted.fences == whole.counted.fences); // nothing is left to chance
        if (op == MapOperation::get)
          CHECK(whole.counted.fences + whole.counted.lines == 0);
        else if (type == MapType::dram)
          CHECK(whole.counted.fences == 0);
        else if (type == MapType::map)
          CHECK(whole.counted.fences <= 2.1 * static_cast<double>(wanted.operations));
        else
          CHECK(whole.counted.fences >= 3 * wanted.operations);
      }
}

TEST_CASE("a pool has room for values of which few go into a slab") {
  // what was missing here is more than what pools have to spare
  MapPlan wanted = plan(MapType::map, MapOperation::insert, 12'000);
  wanted.value_bytes = 5200;
  CHECK(run(wanted, MapPass::whole).seconds > 0);
}

TEST_CASE("gets may be repeated, dependent ones too; insertions may not") {
  Result<MapBench> gets = MapBench::create(plan(MapType::map_rp, MapOperation::get, 2000));
  REQUIRE(bool(gets));
  CHECK(gets->load_seconds() > 0);
  for (const MapPass pass : {MapPass::whole, MapPass::dependent, MapPass::each})
    CHECK(bool(gets->run(pass)));
  Result<MapBench> inserts = MapBench::create(plan(MapType::map_rp, MapOperation::insert, 2000));
  REQUIRE(bool(inserts));
  CHECK(inserts->run(MapPass::dependent).error().code == Errc::bad_input);
  CHECK(bool(inserts->run(MapPass::whole)));
  CHECK(inserts->run(MapPass::whole).error().code == Errc::bad_input);
}

TEST_CASE("threads share the operations and their counts add up") {
  MapPlan wanted = plan(MapType::map_rp, MapOperation::remove, 3001);
  const MapRun alone = run(wanted, MapPass::whole);
  wanted.cpus.assign(3, wanted.cpus.front());
  const MapRun shared = run(wanted, MapPass::whole);
  CHECK(shared.members.size() == 3);
  CHECK(shared.counted.fences >= 3001);
  CHECK(alone.counted.fences >= 3001);
}

TEST_CASE("gets find everything while a writer inserts and removes") {
  for (const MapType type : {MapType::map, MapType::dram, MapType::map_rp}) {
    MapPlan wanted = plan(type, MapOperation::get, 20'000);
    wanted.writer_cpu = wanted.cpus.front();
    const MapRun found = run(wanted, MapPass::whole);
    CHECK(found.written > 0);
    CHECK(found.members.size() == 2);
  }
  MapPlan wanted = plan(MapType::map, MapOperation::insert, 10);
  wanted.writer_cpu = 0;
  CHECK(MapBench::create(wanted).error().code == Errc::bad_input);
}

TEST_CASE("values as pmembench allocates them are neither written nor read") {
  MapPlan wanted = plan(MapType::map_tx, MapOperation::insert, 1000);
  wanted.value_bytes = 4096;
  const MapRun written = run(wanted, MapPass::whole);
  wanted.alloc = true;
  const MapRun untouched = run(wanted, MapPass::whole);
  CHECK(untouched.counted.fences == written.counted.fences);
  CHECK(bool(MapBench::create(plan(MapType::map_tx, MapOperation::get, 1000))));
}

TEST_CASE("what cannot be run is refused") {
  const auto refused = [](MapPlan wanted, Errc code) {
    const Result<MapBench> made = MapBench::create(wanted);
    return !made && made.error().code == code;
  };
  MapPlan wanted = plan(MapType::map_rp, MapOperation::insert, 0);
  CHECK(refused(wanted, Errc::bad_input));
  wanted.operations = 10;
  wanted.value_bytes = 0;
  CHECK(refused(wanted, Errc::bad_input));
  wanted.value_bytes = 8;
  wanted.cpus = {};
  CHECK(refused(wanted, Errc::bad_input));
  wanted.cpus = {test::missing_cpu};
  Result<MapBench> nowhere = MapBench::create(wanted);
  REQUIRE(bool(nowhere));
  CHECK(nowhere->run(MapPass::whole).error().code == Errc::bad_input);
  wanted.type = MapType::map; // whose counterpart is a type of its own
  wanted.tier = *tier::parse("dram");
  CHECK(refused(wanted, Errc::bad_input));
}

TEST_CASE("libpmemobj's primitives are run and counted") {
  Result<PrimitiveBench> bench =
      PrimitiveBench::create(*tier::parse("shm:/dev/shm"), test::usable_cpu());
  REQUIRE(bool(bench));
  const auto fences = [&](Primitive primitive) {
    Result<PrimitiveRun> run = bench->run(primitive, 300);
    REQUIRE(bool(run));
    CHECK(run->seconds > 0);
    return static_cast<double>(run->counted.fences) / 300;
  };
  CHECK(fences(Primitive::persist) == 1);
  const double one = fences(Primitive::tx_1_range);
  CHECK(one > 1);
  CHECK(fences(Primitive::tx_8_ranges) > one);
  CHECK(fences(Primitive::tx_alloc) > one);
  for (const Primitive primitive :
       {Primitive::publish_1_word, Primitive::alloc_publish, Primitive::alloc_free})
    CHECK(fences(primitive) >= 1);
}
