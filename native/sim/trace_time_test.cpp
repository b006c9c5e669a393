// Requests at the times of a trace, by one thread and by several.
#include <algorithm>
#include <vector>

#include "sim/checker.hpp"
#include "sim/test_runs.hpp"

using namespace nearfar;
using namespace nearfar::sim;

TEST_CASE("in trace time, requests are sent at the times of the trace, also to a busy memory") {
  const Device device = pcm();
  const Timing& t = device.timing;
  const Time alone = t.tRCD + t.CL + t.burst;
  for (const Engine engine : {Engine::fast, Engine::exact}) {
    Setup setup = all_far(device, engine, PagePolicy::closed);
    setup.core.issue = Issue::trace_time;
    const Time gap = 1'000'000;
    const Outcome idle = run(setup, {Pattern::chase, 200, 64 * mib, 0, gap, 5});
    CHECK(idle.end == 200 * gap + alone); // each on an idle memory
    CHECK(idle.tiers[0].read_time == 200 * alone);
    const Outcome at_once = run(setup, {Pattern::chase, 2000, 64 * mib, 0, 0, 5});
    CHECK(at_once.compute == 0);
    CHECK(at_once.end < 2000 * alone / 4); // no access waits for the data of another
    CHECK(at_once.tiers[0].read_time > 2000 * 100 * alone); // all wait for the banks
  }
}

TEST_CASE("in trace time, results do not depend on the number of threads") {
  Figures figures = ddr4_figures();
  figures.emplace_back("channels", 4);
  const Device bare = made("channels", MemoryKind::commands, figures);
  figures.emplace_back("link_latency", 70);
  figures.emplace_back("link_bandwidth", 8e9);
  figures.emplace_back("link_queue_depth", 16);
  const Device linked = made("linked", MemoryKind::commands, figures);
  for (const Device& far : {bare, linked})
    for (const PlacementRule rule :
         {PlacementRule::fixed, PlacementRule::interleave, PlacementRule::hot_pages})
      for (const Time gap : {Time{500}, Time{20'000}}) { // above and below the bandwidth
        Setup setup = all_far(bare, Engine::exact);
        setup.far = far;
        setup.core.issue = Issue::trace_time;
        setup.plan.rule = rule;
        setup.plan.near_bytes = mib;
        const Synthetic what{Pattern::random, 150'000, 4 * mib, 0.3, gap, 5};
        const Outcome one = run(setup, what);
        setup.threads = 3;
        const Outcome three = run(setup, what);
        CAPTURE(far.name);
        CAPTURE(static_cast<int>(rule));
        CAPTURE(gap);
        CHECK(one.requests == 150'000);
        CHECK(one.end == three.end);
        for (unsigned near = 0; near < 2; ++near) {
          const TierOutcome& a = one.tiers[near];
          const TierOutcome& b = three.tiers[near];
          CHECK(a.reads + a.writes == b.reads + b.writes);
          CHECK(a.read_time == b.read_time);
          CHECK(a.read_ns.percentile(0.99) == b.read_ns.percentile(0.99));
          CHECK(a.ended.counts() == b.ended.counts());
          CHECK(a.energy.total() == b.energy.total());
          CHECK(a.wear.max_line == b.wear.max_line);
          CHECK(a.activity.row_hits == b.activity.row_hits);
          CHECK(a.banks.size() == b.banks.size());
          CHECK(a.activity.reads + a.activity.writes >= a.reads + a.writes);
        }
        CHECK(one.tiers[0].reads + one.tiers[0].writes + one.tiers[1].reads + one.tiers[1].writes ==
              150'000);
      }
}

TEST_CASE("in trace time, a posted write ends when the memory has room for it") {
  for (const Engine engine : {Engine::fast, Engine::exact}) {
    Setup setup = all_far(ddr4(), engine);
    setup.core.issue = Issue::trace_time;
    const Outcome o = run(setup, {Pattern::random, 20'000, 64 * mib, 1, 0, 5});
    CHECK(o.tiers[0].ended.counts()[0] < 1'000);
    CHECK(o.end > 20'000 * setup.far.timing.burst);
  }
}

TEST_CASE("in trace time, channels of the exact engine violate no timing rule") {
  Figures figures = ddr4_figures();
  figures.emplace_back("channels", 4);
  Setup setup = all_far(made("channels", MemoryKind::commands, figures), Engine::exact);
  setup.core.issue = Issue::trace_time;
  setup.threads = 2;
  std::vector<Command> commands;
  setup.commands[0] = &commands;
  const Outcome o = run(setup, {Pattern::random, 20'000, 64 * mib, 0.4, 1000, 7});
  CHECK(o.tiers[0].activity.reads + o.tiers[0].activity.writes == 20'000);
  CHECK(std::any_of(commands.begin(), commands.end(),
                    [](const Command& c) { return c.channel == 3; }));
  const std::vector<Violation> found = check_timing(setup.far, commands);
  CHECK_MESSAGE(found.empty(), (found.empty() ? "" : found[0].rule));
}

TEST_CASE("threads are refused where channels depend on each other") {
  for (const Engine engine : {Engine::fast, Engine::exact})
    for (const Issue issue : {Issue::window, Issue::trace_time}) {
      Setup setup = all_far(ddr4(), engine);
      setup.core.issue = issue;
      setup.threads = 2;
      SyntheticSource source({Pattern::random, 1, mib, 0, 0, 1});
      const bool independent = engine == Engine::exact && issue == Issue::trace_time;
      CHECK(static_cast<bool>(simulate(source, setup)) == independent);
    }
}

TEST_CASE("both engines agree in trace time") {
  for (const Device& device : {ddr4(), pcm()})
    for (const double writes : {0.0, 0.3})
      for (const Time gap : {Time{20'000}, Time{100'000}}) { // above and below the bandwidth of PCM
        Setup setup = all_far(device, Engine::fast);
        setup.core.issue = Issue::trace_time;
        const Synthetic what{Pattern::random, 20'000, 64 * mib, writes, gap, 5};
        const Outcome fast = run(setup, what);
        setup.engine = Engine::exact;
        const Outcome exact = run(setup, what);
        CAPTURE(writes);
        CAPTURE(gap);
        CHECK(static_cast<double>(fast.end) ==
              doctest::Approx(static_cast<double>(exact.end)).epsilon(0.05));
      }
}
