#include "trace/stalls.hpp"

#include <doctest/doctest.h>
#include <span>

using namespace nearfar;
using namespace nearfar::trace;

namespace {

constexpr std::uint64_t records = 1000;

/// Two sites, site 1 of object 1 and site 2 of object 2.
const std::vector<std::uint32_t> sites = {0, 1, 2};

SitePlacement placing() {
  SitePlacement p;
  p.memories[0] = {100, 1, 1, 0, 0, 21};
  p.memories[1] = {300, 3, 3, 0, 0, 21};
  p.core = {0, 256, 10, 1536, 12};
  return p;
}

/// A load every `gap` instructions, each waiting for the one before where `depends`.
std::vector<Record> loads(std::uint64_t gap, bool depends, std::uint32_t object = 1) {
  std::vector<Record> made;
  for (std::uint64_t i = 0; i < records; ++i) {
    Record one;
    one.line = i;
    one.instructions = (i + 1) * gap;
    one.object = object;
    one.depends = depends && i > 0;
    made.push_back(one);
  }
  return made;
}

Cost cost_of(const SitePlacement& placing, const std::vector<Record>& made) {
  Result<StallModel> costs = StallModel::create(placing);
  REQUIRE(costs);
  costs->take(made, sites);
  return costs->finish(made.back().instructions, sites.size());
}

} // namespace

TEST_CASE("a chain of loads costs a latency each, whatever the window") {
  const Cost cost = cost_of(placing(), loads(1, true));
  CHECK(cost.time_ns == doctest::Approx(records * 100.0));
  CHECK(cost.sites[1].dependent == records - 1);
}

TEST_CASE("independent loads overlap as far as lines may be in flight") {
  CHECK(cost_of(placing(), loads(1, false)).time_ns ==
        doctest::Approx(records * 100.0 / 10).epsilon(0.01));
}

TEST_CASE("chained_fraction of the loads without a known producer costs that fraction of a chain") {
  SitePlacement p = placing();
  const auto time = [&](double share) {
    p.core.chained_fraction = share;
    return cost_of(p, loads(1, false)).time_ns;
  };
  CHECK(time(1) == doctest::Approx(records * 100.0));
  CHECK(time(0) < time(0.5));
  CHECK(time(0.5) < time(0.9));
  CHECK(time(0.9) < time(1));
  p.core.chained_fraction = 1.5;
  CHECK(!StallModel::create(p));
}

TEST_CASE("loads a window apart do not overlap; as far apart as a latency, they cost nothing") {
  SitePlacement p = placing();
  CHECK(cost_of(p, loads(256, false)).time_ns == doctest::Approx(records * 100.0).epsilon(0.01));
  p.core.instruction_ns = 1; // 256 ns between loads
  const Cost cost = cost_of(p, loads(256, false));
  CHECK(cost.time_ns == doctest::Approx(records * 256.0).epsilon(0.01));
  CHECK(cost.stall_ns == doctest::Approx(100)); // for the last one, with nothing behind it
}

TEST_CASE("serial time hides no latency: the cost of a miss does not depend on it") {
  for (const double held : {0.0, 0.5, 10.0, 100.0}) {
    SitePlacement p = placing();
    p.core.instruction_ns = 0.1;
    p.core.serial_ns_per_instruction = held;
    for (const bool depends : {false, true}) { // one miss in each window, or a chain
      const std::vector<Record> made = loads(depends ? 5 : 300, depends);
      p.far_sites = {};
      const Cost near = cost_of(p, made);
      p.far_sites = {0, 1};
      const Cost far = cost_of(p, made);
      CAPTURE(held);
      CHECK(far.time_ns - near.time_ns == doctest::Approx(records * 200.0).epsilon(0.01));
      CHECK(far.sites[1].stall_ns - near.sites[1].stall_ns ==
            doctest::Approx(records * 200.0).epsilon(0.01));
    }
  }
}

TEST_CASE("lines arrive during serial time: a slow stream is not bound by bandwidth") {
  SitePlacement p = placing();
  p.core.serial_ns_per_instruction = 5;
  std::vector<Record> made = loads(1, false);
  for (Record& one : made)
    one.kind = RecordKind::prefetch;
  const double near = cost_of(p, made).time_ns;
  p.far_sites = {0, 1}; // 3 ns a line
  CHECK(near == doctest::Approx(records * 5.0));
  CHECK(cost_of(p, made).time_ns == doctest::Approx(near));
  for (Record& one : made)
    one.kind = RecordKind::store; // a place is free again after 300 ns, ten in 500 ns
  p.core.serial_ns_per_instruction = 50;
  CHECK(cost_of(p, made).stall_ns == 0);
}

TEST_CASE("a thread does not stream faster from two memories than from the nearer one") {
  for (const RecordKind kind : {RecordKind::prefetch, RecordKind::load, RecordKind::store,
                                RecordKind::write_back, RecordKind::nt_store}) {
    for (const double far_line : {20.0, 25.0, 40.0, 100.0}) {
      SitePlacement p = placing();
      p.memories[0] = {100, 20, 20, 0, 21};
      p.memories[1] = {200, far_line, far_line, 0, 21};
      std::vector<Record> made = loads(1, false);
      for (std::uint64_t i = 0; i < records; ++i) {
        made[i].kind = kind;
        made[i].object = 1 + i % 2;
      }
      made.back().kind = RecordKind::load; // behind all that is written
      const double near = cost_of(p, made).time_ns;
      p.far_sites = {0, 0, 1};
      const double split = cost_of(p, made).time_ns;
      p.far_sites = {0, 1, 1};
      const double far = cost_of(p, made).time_ns;
      CAPTURE(static_cast<int>(kind));
      CAPTURE(far_line);
      CHECK(split >= near);
      CHECK(split <= far + 200);
    }
  }
}

TEST_CASE("threads together stream from two memories at the sum of their bandwidths, at most") {
  std::vector<Record> made = loads(1, false);
  const auto time = [&](std::vector<std::uint8_t> far_sites) {
    SitePlacement p = placing();
    p.memories[1] = {100, 1, 1, 0, 0, 21};
    p.far_sites = std::move(far_sites);
    Result<StallModel> costs = StallModel::create(p);
    REQUIRE(costs);
    for (std::uint16_t thread = 0; thread < 32; ++thread) {
      for (std::uint64_t i = 0; i < records; ++i) {
        made[i].kind = RecordKind::prefetch;
        made[i].thread = thread;
        made[i].object = 1 + i % 2;
      }
      costs->take(made, sites);
    }
    return costs->finish(0, sites.size()).time_ns;
  };
  CHECK(time({0, 0, 1}) == doctest::Approx(time({}) / 2).epsilon(0.01));
}

TEST_CASE("bandwidth bounds what latency would let through") {
  SitePlacement p = placing();
  p.memories[0].read_ns_per_line = 50;
  CHECK(cost_of(p, loads(1, false)).time_ns == doctest::Approx(records * 50.0).epsilon(0.01));
  std::vector<Record> made = loads(1, false);
  for (Record& one : made)
    one.kind = RecordKind::prefetch;
  CHECK(cost_of(p, made).time_ns == doctest::Approx(records * 50.0).epsilon(0.01));
}

TEST_CASE("stores go on until their places are taken") {
  std::vector<Record> made = loads(1, false);
  for (Record& one : made)
    one.kind = RecordKind::store;
  CHECK(cost_of(placing(), made).time_ns == doctest::Approx(records * 10.0).epsilon(0.03));
}

TEST_CASE("a far site costs far latency, and the stall is its own") {
  SitePlacement p = placing();
  p.far_sites = {0, 0, 1};
  std::vector<Record> made = loads(1, true);
  for (std::uint64_t i = 0; i < records; i += 2)
    made[i].object = 2;
  const Cost cost = cost_of(p, made);
  CHECK(cost.time_ns == doctest::Approx(records / 2 * 400.0));
  CHECK(cost.sites[2].stall_ns == doctest::Approx(records / 2 * 300.0).epsilon(0.02));
  CHECK(cost.sites[1].stall_ns == doctest::Approx(records / 2 * 100.0).epsilon(0.02));
}

TEST_CASE("small pages cost a walk each time the TLB has forgotten them") {
  SitePlacement p = placing();
  p.memories[0].page_shift = 12;
  p.memories[0].walk_ns = p.memories[0].overlapped_walk_ns = 40;
  std::vector<Record> made = loads(1, true);
  const Cost few = cost_of(p, made); // 64 lines a page
  CHECK(few.sites[1].walks == (records + 63) / 64);
  for (Record& one : made)
    one.line *= 64;
  CHECK(cost_of(p, made).time_ns == doctest::Approx(records * 140.0));
}

TEST_CASE("page walks of loads that wait for no other overlap") {
  SitePlacement p = placing();
  p.memories[0].page_shift = 12;
  p.memories[0].walk_ns = 40;
  p.memories[0].overlapped_walk_ns = 10;
  std::vector<Record> made = loads(1, false);
  for (Record& one : made)
    one.line *= 64;
  CHECK(cost_of(p, made).time_ns == doctest::Approx(records * 110.0 / 10).epsilon(0.01));
}

TEST_CASE("memories share a TLB: what lies on two of them has no more of it") {
  SitePlacement p = placing();
  p.core.tlb_entries = 512;
  p.core.tlb_ways = 4;
  p.memories[0] = p.memories[1] = {100, 1, 1, 40, 40, 12};
  std::vector<Record> made = loads(1, true); // on 750 pages by turns, half of them of each site
  for (std::uint64_t i = 0; i < records; ++i) {
    made[i].line = i % 750 * 64;
    made[i].object = i % 750 < 375 ? 1 : 2;
  }
  const Cost near = cost_of(p, made);
  p.far_sites = {0, 0, 1};
  const Cost both = cost_of(p, made);
  CHECK(both.sites[1].walks + both.sites[2].walks == near.sites[1].walks + near.sites[2].walks);
  CHECK(both.time_ns == doctest::Approx(near.time_ns));
  p.memories[1].page_shift = 21; // few large pages leave more of it to small ones
  CHECK(cost_of(p, made).sites[1].walks < near.sites[1].walks);
}

TEST_CASE("what streams or is stored in bursts gains nothing by a longer latency") {
  for (const RecordKind kind : {RecordKind::prefetch, RecordKind::store}) {
    std::vector<Record> made = loads(1, false);
    for (std::uint64_t i = 0; i < records; ++i) { // 50 lines at once, then 400 instructions
      made[i].kind = kind;
      made[i].instructions = i / 50 * 400 + 1;
    }
    SitePlacement p = placing();
    p.core.instruction_ns = 1;
    p.memories[0] = {100, 6, 6, 0, 21};
    p.memories[1] = {250, 6, 6, 0, 21};
    const double near = cost_of(p, made).time_ns;
    p.far_sites = {0, 1};
    CHECK(cost_of(p, made).time_ns >= near);
  }
}

TEST_CASE("figures of no sense are refused") {
  SitePlacement p = placing();
  p.core.fill_buffers = max_fill_buffers + 1;
  CHECK(!StallModel::create(p));
  p = placing();
  p.memories[1].latency_ns = -1;
  CHECK(!StallModel::create(p));
}

TEST_CASE("skipped records take no time") {
  SitePlacement p = placing();
  p.core.instruction_ns = 1;
  Result<StallModel> costs = StallModel::create(p);
  REQUIRE(costs);
  std::vector<Record> made = loads(1000, true);
  costs->take(std::span(made).first(1), sites);
  costs->skip_records();
  costs->take(std::span(made).last(1), sites);
  const Cost cost = costs->finish(0, sites.size());
  CHECK(cost.instructions == 1000);
  CHECK(cost.time_ns == doctest::Approx(1000 + 100 + 100));
}

TEST_CASE("an idle thread's few accesses are not charged what another thread took") {
  Result<StallModel> costs = StallModel::create(placing());
  REQUIRE(costs);
  costs->take(loads(1, true), sites); // site 1, a chain of 100 us
  std::vector<Record> idle = loads(10, false, 2);
  idle.resize(3);
  for (Record& one : idle)
    one.thread = 1;
  costs->take(idle, sites);
  const Cost cost = costs->finish(0, sites.size());
  CHECK(cost.sites[1].stall_ns == doctest::Approx(records * 100.0));
  CHECK(cost.sites[2].stall_ns <= 3 * 100.0);
  CHECK(cost.time_ns == doctest::Approx(records * 100.0));
  CHECK(cost.cpu_ns <= records * 100.0 + 3 * 100.0);
}

TEST_CASE("threads that stream at once take as long as their lines occupy the memory") {
  Result<StallModel> costs = StallModel::create(placing());
  REQUIRE(costs);
  std::vector<Record> made = loads(1, false);
  costs->take(made, sites);
  for (std::uint16_t thread = 1; thread < 32; ++thread) {
    for (Record& one : made)
      one.thread = thread;
    costs->take(made, sites);
  }
  const Cost cost = costs->finish(0, sites.size());
  CHECK(cost.time_ns == doctest::Approx(32 * records * 1.0)); // alone, 10 lines in 100 ns
  CHECK(cost.sites[1].stall_ns <= 32 * records * 100.0);
}

TEST_CASE("no site is charged more than the latency and the walk of each of its accesses") {
  SitePlacement p = placing();
  p.memories[0].walk_ns = p.memories[0].overlapped_walk_ns = 20;
  p.memories[0].write_ns_per_line = 50;
  Result<StallModel> costs = StallModel::create(p);
  REQUIRE(costs);
  std::vector<Record> made = loads(1, false);
  for (std::size_t i = 0; i < made.size(); ++i)
    if (i % 100 != 99) { // 99 lines written, then one read of another site behind them
      made[i].kind = RecordKind::write_back;
      made[i].object = 2;
    }
  costs->take(made, sites);
  const Cost cost = costs->finish(made.back().instructions, sites.size());
  CHECK(cost.sites[1].stall_ns <= records / 100 * 120.0);
  CHECK(cost.sites[2].stall_ns > 0); // the queue is made of its lines
  CHECK(cost.sites[1].stall_ns + cost.sites[2].stall_ns == doctest::Approx(cost.stall_ns));
}
