#include "sim/cosimulation.hpp"

#include "base/random.hpp"
#include "sim/simulate.hpp"
#include "sim/test_devices.hpp"

using namespace nearfar;
using namespace nearfar::sim;

namespace {

Cosimulation make(const Device& device, unsigned read_queue = 32) {
  Result<Cosimulation> made = Cosimulation::create(device, {}, read_queue);
  REQUIRE(made);
  return std::move(*made);
}

/// Clocks until a read completes.
std::uint64_t latency(Cosimulation& memory, std::uint64_t address) {
  const std::uint64_t from = memory.clock();
  REQUIRE(memory.enqueue(7, address, false));
  std::vector<Completion> done;
  while (done.empty())
    REQUIRE(memory.tick(1, done));
  CHECK(done[0].id == 7);
  return memory.clock() - from;
}

Device linked() {
  Figures figures = ddr4_figures();
  figures.insert(figures.end(),
                 {{"link_latency", 100}, {"link_bandwidth", 32e9}, {"link_queue_depth", 2}});
  return made("linked", MemoryKind::commands, figures);
}

} // namespace

TEST_CASE("an unloaded read takes tRCD + CL + burst, and a row hit CL + burst") {
  Cosimulation memory = make(ddr4());
  CHECK(latency(memory, 0) == 22 + 22 + 4);
  CHECK(latency(memory, 64 * 4) == 22 + 4); // the same bank group, the next column
  CHECK(memory.clock_ps() == 1000);
}

TEST_CASE("one read at a time takes as long as in a run of the exact engine") {
  for (const Device& device : {ddr4(), pcm(), linked()}) {
    const Synthetic what{Pattern::chase, 2000, 16 << 20, 0, 0, 9};
    SyntheticSource source(what), same(what);
    Setup setup;
    setup.near = setup.far = device;
    setup.engine = Engine::exact;
    setup.core = {Issue::blocking, 1, true};
    Result<Outcome> run = simulate(source, setup);
    REQUIRE(run);
    Cosimulation memory = make(device);
    std::vector<Request> requests(what.count);
    std::size_t filled = 0;
    while (filled < requests.size())
      filled += *same.fill(std::span(requests).subspan(filled));
    std::vector<Completion> done;
    for (const Request& request : requests) {
      REQUIRE(memory.enqueue(0, request.address, false));
      for (const std::size_t before = done.size(); done.size() == before;)
        REQUIRE(memory.tick(1, done));
    }
    if (device.link.present()) // requests leave at whole clocks only
      CHECK(static_cast<double>(done.back().at) ==
            doctest::Approx(static_cast<double>(run->end)).epsilon(0.02));
    else
      CHECK(done.back().at == run->end);
  }
}

TEST_CASE("ticking in larger steps changes no completion") {
  const auto completions = [](std::uint64_t step) {
    Cosimulation memory = make(ddr4(), 64);
    Random random(3);
    for (std::uint64_t i = 0; i < 60; ++i)
      CHECK(memory.enqueue(i, random.next() % (64 << 20), i % 3 == 0));
    std::vector<Completion> done;
    while (memory.clock() < 4000)
      REQUIRE(memory.tick(step, done));
    std::vector<std::pair<std::uint64_t, Time>> found;
    for (const Completion& one : done)
      found.emplace_back(one.id, one.at);
    return found;
  };
  CHECK(completions(1).size() == 40);
  CHECK(completions(1) == completions(1000));
}

TEST_CASE("full queues accept nothing until a request completes") {
  Cosimulation memory = make(ddr4(), 2);
  CHECK(memory.enqueue(1, 0, false));
  CHECK(memory.enqueue(2, 1 << 20, false));
  CHECK(!memory.accepts(2 << 20, false));
  CHECK(!memory.enqueue(3, 2 << 20, false));
  std::vector<Completion> done;
  REQUIRE(memory.tick(500, done));
  CHECK(done.size() == 2);
  CHECK(memory.enqueue(3, 2 << 20, false));
  std::uint64_t writes = 0;
  while (memory.enqueue(0, writes << 20, true))
    ++writes;
  CHECK(writes == 64); // twice the 32 from which writes are drained
  REQUIRE(memory.tick(2000, done));
  CHECK(memory.accepts(0, true));
  const Activity activity = memory.finish().activity;
  CHECK(!memory.enqueue(0, 0, false));
  CHECK(activity.reads == 3);
  CHECK(activity.writes == 64);
}

TEST_CASE("a link adds its latency, and bounds reads in flight") {
  Cosimulation memory = make(linked());
  CHECK(latency(memory, 0) == 22 + 22 + 4 + 2 * 100 + 2); // 64 B at 32 GB/s
  CHECK(memory.enqueue(1, 0, false));
  CHECK(memory.enqueue(2, 64, false));
  CHECK(!memory.enqueue(3, 128, false));
}

TEST_CASE("a read queue of 0 and contradictory settings of the controller are refused") {
  CHECK(!Cosimulation::create(ddr4(), {}, 0));
  Controller controller;
  controller.drain_to = controller.drain_from;
  CHECK(!Cosimulation::create(ddr4(), controller, 1));
  controller = {};
  controller.power_down_after = 0;
  CHECK(!Cosimulation::create(ddr4(), controller, 1)); // without tXP
}

TEST_CASE("a queued device accepts no write while its buffer is full") {
  const Device device = made("slow", MemoryKind::queued,
                             {{"read_latency", 300},
                              {"write_latency", 100},
                              {"read_bandwidth", 6.4e9},
                              {"write_bandwidth", 6.4e8},
                              {"access_unit_bytes", 64}});
  Cosimulation memory = make(device);
  std::vector<Completion> done;
  unsigned at_once = 0;
  while (memory.enqueue(0, at_once * 64, true))
    ++at_once;
  CHECK(at_once == 65); // 64 wait, and one is being written
  CHECK(memory.accepts(0, false));
  unsigned later = 0;
  for (unsigned clock = 0; clock < 10'000; ++clock) {
    REQUIRE(memory.tick(1, done));
    later += memory.enqueue(0, clock * 64, true);
  }
  CHECK(later == doctest::Approx(100).epsilon(0.02)); // 64 B take 100 ns
}

TEST_CASE("simulated time has a limit") {
  Cosimulation memory = make(pcm());
  std::vector<Completion> done;
  CHECK(memory.enqueue(1, 0, false));
  for (const std::uint64_t clocks : {~std::uint64_t{0}, std::uint64_t{1} << 61}) {
    const Status ticked = memory.tick(clocks, done);
    REQUIRE(!ticked);
    CHECK(ticked.error().code == Errc::bad_input);
  }
  CHECK(memory.clock() == 0);
  REQUIRE(memory.tick(std::uint64_t{1} << 40, done));
  CHECK(done.size() == 1);
}

TEST_CASE("a completion is seen at the end of its clock") {
  const Cosimulation memory = make(ddr4());
  CHECK(memory.clock_at(0) == 0);
  CHECK(memory.clock_at(1) == 1);
  CHECK(memory.clock_at(1000) == 1);
  CHECK(memory.clock_at(1001) == 2);
}
