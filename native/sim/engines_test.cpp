// Both engines against theory, against the checker, and against each other.
#include <algorithm>
#include <initializer_list>
#include <vector>

#include "sim/checker.hpp"
#include "sim/test_runs.hpp"

using namespace nearfar;
using namespace nearfar::sim;

namespace {

/// `streams` sequences of lines, `apart` bytes from each other, a line of each in turns; of each
/// `write_every` accesses to a stream one is a write (0: none).
std::vector<Request> in_turns(std::uint64_t streams, std::uint64_t apart, std::size_t count,
                              std::size_t write_every, Time gap) {
  std::vector<Request> requests(count);
  for (std::size_t i = 0; i < count; ++i) {
    requests[i].address = i % streams * apart + i / streams * line_bytes;
    requests[i].gap = gap;
    requests[i].write = write_every && (i / streams + i) % write_every == 0;
  }
  return requests;
}

/// DDR4 without refresh.
Device unrefreshed() {
  Figures figures = ddr4_figures();
  std::erase_if(figures, [](const auto& f) { return f.first == "tRFC" || f.first == "tREFI"; });
  return made("ddr4", MemoryKind::commands, figures);
}

/// A pseudo-channel of HBM2 without refresh, with so many command buses.
Device hbm2(unsigned buses) {
  return made("hbm2", MemoryKind::commands,
              {{"clock", 1},
               {"tRCD", 15},
               {"tRCDWR", 13},
               {"tRP", 13},
               {"tRAS", 35},
               {"CL", 14},
               {"CWL", 5},
               {"burst", 2},
               {"tCCD", 2},
               {"tCCDL", 4},
               {"tRRD", 4},
               {"tFAW", 15},
               {"tWTR", 6},
               {"tWTRL", 8},
               {"tWR", 16},
               {"tRTP", 5},
               {"tRTRS", 2},
               {"bank_groups", 4},
               {"banks", 4},
               {"row_bytes", 2048},
               {"command_clocks", 2},
               {"command_buses", static_cast<double>(buses)}});
}

} // namespace

TEST_CASE("an unloaded read takes tRCD + CL + burst in both engines") {
  for (const Device& device : {ddr4(), pcm()})
    for (const Engine engine : {Engine::fast, Engine::exact}) {
      Setup setup = all_far(device, engine, PagePolicy::closed);
      setup.core.issue = Issue::blocking;
      const Outcome o = run(setup, {Pattern::sequential, 1, mib, 0, 0, 1});
      const Timing& t = device.timing;
      CHECK(o.end == t.tRCD + t.CL + t.burst);
    }
}

TEST_CASE("a blocking write with closed rows ends when its cells are written") {
  for (const Engine engine : {Engine::fast, Engine::exact}) {
    Setup setup = all_far(pcm(), engine, PagePolicy::closed);
    setup.core = {Issue::blocking, 1, false};
    const Timing& t = setup.far.timing;
    const Outcome o = run(setup, {Pattern::sequential, 1, mib, 1, 0, 1});
    CHECK(o.end == t.tRCD + t.CWL + t.burst + t.tWR + t.tRP);
  }
}

TEST_CASE("reads use the full bandwidth of the bus, except during refreshes") {
  for (const Engine engine : {Engine::fast, Engine::exact}) {
    Setup setup = all_far(ddr4(), engine);
    setup.core.window = 64;
    const std::uint64_t lines = 200'000;
    const Outcome o = run(setup, {Pattern::sequential, lines, 64 * mib, 0, 0, 1});
    const Timing& t = setup.far.timing;
    const double peak = static_cast<double>(lines * t.burst);
    // Every tREFI a row is closed, its rank refreshed, the row opened again.
    const Time idle = t.tRP + t.tRFC + t.tRCD;
    const double busy = 1 - static_cast<double>(idle) / static_cast<double>(t.tREFI);
    CHECK(peak / static_cast<double>(o.end) == doctest::Approx(busy).epsilon(0.01));
    setup.near = setup.far = unrefreshed();
    const Outcome never_refreshed = run(setup, {Pattern::sequential, lines, 64 * mib, 0, 0, 1});
    CHECK(peak / static_cast<double>(never_refreshed.end) > 0.99);
  }
}

TEST_CASE(
    "the exact engine violates no timing rule, for all row policies, write policies and cores") {
  for (const Device& device : {ddr4(), pcm()})
    for (const PagePolicy page : {PagePolicy::open, PagePolicy::closed, PagePolicy::timeout})
      for (const bool posted : {false, true})
        for (const unsigned window : {1u, 24u})
          for (const Pattern pattern : {Pattern::sequential, Pattern::random}) {
            Setup setup = all_far(device, Engine::exact, page);
            setup.core = {Issue::window, window, posted};
            std::vector<Command> commands;
            setup.commands[0] = &commands;
            const Outcome o = run(setup, {pattern, 3000, 8 * mib, 0.4, 3000, 7});
            CHECK(o.tiers[0].activity.reads + o.tiers[0].activity.writes == 3000);
            const std::vector<Violation> found = check_timing(device, commands);
            CAPTURE(static_cast<int>(page));
            CAPTURE(window);
            CAPTURE(posted);
            CHECK_MESSAGE(found.empty(), (found.empty() ? "" : found[0].rule));
          }
}

TEST_CASE("rows that time out are closed at clock edges, for any clock") {
  for (const double clock : {0.416, 0.667, 1.5}) {
    Figures figures = pcm_figures();
    figures[0].second = clock;
    Setup setup =
        all_far(made("clock", MemoryKind::commands, figures), Engine::exact, PagePolicy::timeout);
    std::vector<Command> commands;
    setup.commands[0] = &commands;
    run(setup, {Pattern::random, 1000, 8 * mib, 0.4, 50'000, 7});
    CAPTURE(clock);
    CHECK(setup.far_controller.timeout % setup.far.timing.clock != 0);
    const auto closed = std::count_if(commands.begin(), commands.end(), [](const Command& c) {
      return c.type == CommandType::precharge;
    });
    CHECK(closed > 100);
    const std::vector<Violation> found = check_timing(setup.far, commands);
    CHECK_MESSAGE(found.empty(), (found.empty() ? "" : found[0].rule));
  }
}

TEST_CASE("a row times out on an idle channel, unless a request for it arrives before") {
  Setup setup = all_far(unrefreshed(), Engine::exact, PagePolicy::timeout);
  setup.core.issue = Issue::blocking;
  const auto hits = [&](Time gap) {
    std::vector<Request> requests(2);
    requests[1].gap = gap;
    return run(setup, requests, true).tiers[0].activity.row_hits;
  };
  // The first read is issued after tRCD, and completes CL and the burst later.
  const Time open = setup.far_controller.timeout - setup.far.timing.CL - setup.far.timing.burst;
  CHECK(hits(0) == 1);
  CHECK(hits(open) == 1);
  CHECK(hits(open + setup.far.timing.clock) == 0);
  CHECK(hits(1'000'000) == 0);
  CHECK(hits(10'000'000) == 0);
}

TEST_CASE(
    "the exact engine violates no timing rule, for all schedulers, caps, drains and mappings") {
  for (const Scheduler scheduler : {Scheduler::fr_fcfs, Scheduler::fcfs})
    for (const unsigned cap : {0u, 1u, 4u})
      for (const unsigned drain_from : {1u, 64u})
        for (const char* mapping : {"rorabacobgch", "rochrababgco"})
          for (const Pattern pattern : {Pattern::sequential, Pattern::random}) {
            if (scheduler == Scheduler::fcfs && cap) continue;
            Setup setup = all_far(ddr4(), Engine::exact);
            setup.far_controller.scheduler = scheduler;
            setup.far_controller.row_hit_cap = cap;
            setup.far_controller.drain_from = drain_from;
            setup.far_controller.drain_to = 0;
            setup.far_controller.mapping = *parse_mapping(mapping);
            std::vector<Command> commands;
            setup.commands[0] = &commands;
            const Outcome o = run(setup, {pattern, 5000, mib, 0.4, 1000, 7});
            CHECK(o.tiers[0].activity.reads + o.tiers[0].activity.writes == 5000);
            CAPTURE(cap);
            CAPTURE(drain_from);
            CAPTURE(mapping);
            const std::vector<Violation> found = check_timing(setup.far, commands);
            CHECK_MESSAGE(found.empty(), (found.empty() ? "" : found[0].rule));
          }
}

TEST_CASE(
    "the exact engine violates no timing rule with refresh sets, two buses and long commands") {
  for (const double sets : {4.0, 16.0})
    for (const double buses : {1.0, 2.0})
      for (const PagePolicy page : {PagePolicy::open, PagePolicy::closed}) {
        Figures figures = ddr4_figures();
        figures.insert(figures.end(), {{"refresh_sets", sets},
                                       {"command_buses", buses},
                                       {"tRCDWR", 14},
                                       {"t32AW", 400},
                                       {"command_clocks", 2}});
        Setup setup = all_far(made("banks", MemoryKind::commands, figures), Engine::exact, page);
        setup.core.window = 32;
        std::vector<Command> commands;
        setup.commands[0] = &commands;
        const Outcome o = run(setup, {Pattern::random, 20'000, 64 * mib, 0.4, 1000, 7});
        const std::vector<Violation> found = check_timing(setup.far, commands);
        CAPTURE(sets);
        CAPTURE(buses);
        CHECK_MESSAGE(found.empty(), (found.empty() ? "" : found[0].rule));
        const double due = 2 * sets * static_cast<double>(o.end) / 12'480'000;
        CHECK(static_cast<double>(o.tiers[0].activity.refreshes) ==
              doctest::Approx(due).epsilon(0.05));
      }
}

TEST_CASE("reads of other banks go on while a set of banks is refreshed") {
  Figures figures = ddr4_figures();
  figures.emplace_back("refresh_sets", 16);
  Setup setup = all_far(made("sets", MemoryKind::commands, figures), Engine::exact);
  setup.core.window = 64;
  std::vector<Command> commands;
  setup.commands[0] = &commands;
  run(setup, {Pattern::random, 50'000, 64 * mib, 0, 0, 1});
  const auto refresh = std::find_if(commands.begin(), commands.end(), [](const Command& c) {
    return c.type == CommandType::refresh;
  });
  REQUIRE(refresh != commands.end());
  const auto during = std::count_if(refresh, commands.end(), [&](const Command& c) {
    return c.type == CommandType::activate && c.rank == refresh->rank &&
           c.at < refresh->at + setup.far.timing.tRFC;
  });
  CHECK(during > 10);
}

TEST_CASE("two command buses carry a row and a column command in one clock") {
  // Bursts of one clock: a random read requires three commands, one of them a column command.
  Figures figures = ddr4_figures();
  for (auto& [name, figure] : figures) {
    if (name == "burst" || name == "tCCD" || name == "tCCDL" || name == "tRRD" || name == "tRRDL")
      figure = 1;
    if (name == "tFAW") figure = 4;
  }
  const Synthetic what{Pattern::random, 50'000, 64 * mib, 0, 0, 1};
  const auto time = [&](double buses) {
    Figures with = figures;
    with.emplace_back("command_buses", buses);
    Setup setup = all_far(made("buses", MemoryKind::commands, with), Engine::exact);
    setup.core.window = 512;
    return static_cast<double>(run(setup, what).end);
  };
  CHECK(time(2) < 0.95 * time(1));
}

TEST_CASE("FR-FCFS serves row hits first, up to the cap; FCFS serves the oldest request first") {
  // One bank: row 0 is requested eight times, and row 1 once after the first two.
  const Device device = unrefreshed();
  const auto row_bytes = std::uint64_t{device.organization.row_bytes} * device.organization.groups;
  const std::uint64_t next_row = row_bytes * device.organization.banks * device.organization.ranks;
  std::vector<Request> requests(9);
  for (std::size_t i = 0; i < requests.size(); ++i)
    requests[i].address = i == 2 ? next_row : i * line_bytes * device.organization.groups;
  const auto rows = [&](Scheduler scheduler, unsigned cap) {
    Setup setup = all_far(device, Engine::exact);
    setup.far_controller.scheduler = scheduler;
    setup.far_controller.row_hit_cap = cap;
    std::vector<Command> commands;
    setup.commands[0] = &commands;
    run(setup, requests, true);
    std::vector<std::uint64_t> read;
    for (const Command& command : commands)
      if (command.type == CommandType::read) read.push_back(command.row);
    return read;
  };
  using Rows = std::vector<std::uint64_t>;
  CHECK(rows(Scheduler::fr_fcfs, 0) == Rows{0, 0, 0, 0, 0, 0, 0, 0, 1});
  CHECK(rows(Scheduler::fr_fcfs, 5) == Rows{0, 0, 0, 0, 0, 1, 0, 0, 0});
  CHECK(rows(Scheduler::fcfs, 0) == Rows{0, 0, 1, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("posted writes are drained while no read waits, from drain_idle queued writes on") {
  const std::uint64_t writes = 8;
  for (const Engine engine : {Engine::fast, Engine::exact})
    for (const unsigned idle : {1u, 9u}) {
      Setup setup = all_far(unrefreshed(), engine);
      setup.far_controller.drain_idle = idle;
      setup.core.window = 1;
      std::vector<Request> requests(writes + 2);
      for (std::size_t i = 0; i < requests.size(); ++i) {
        requests[i].address = i * line_bytes;
        requests[i].write = i < writes;
      }
      // If the writes were drained, their row is open, and the reads are row hits.
      requests[writes].gap = 10'000'000;
      const Outcome o = run(setup, requests, true);
      const Timing& t = setup.far.timing;
      const Time reads = idle == 1 ? 2 * (t.CL + t.burst) : 2 * (t.tRCD + t.CL + t.burst);
      CAPTURE(idle);
      CHECK(o.end == 10'000'000 + reads);
      CHECK(o.tiers[0].activity.writes == writes);
    }
}

TEST_CASE("reads that have arrived do not wait for writes that are posted later") {
  Setup setup = all_far(unrefreshed(), Engine::exact);
  setup.core.window = 2;
  std::vector<Request> requests(34);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].address = i * line_bytes;
    requests[i].write = i > 0 && i < 33;
  }
  requests[1].gap = 1'000'000; // 32 writes are posted when the first read has long ended
  const Outcome o = run(setup, requests, true);
  const Timing& t = setup.far.timing;
  CHECK(o.tiers[0].read_ns.largest() >= (t.tRCD + t.CL + t.burst) / 1000);
  CHECK(o.tiers[0].read_time < 2 * (t.tRCD + t.CL + t.burst) + 64 * t.tCCDL);
}

TEST_CASE(
    "the exact engine refreshes on time under load, and the checker reports a missing refresh") {
  for (const PagePolicy page : {PagePolicy::open, PagePolicy::closed, PagePolicy::timeout})
    for (const Time gap : {Time{0}, Time{100'000}, Time{40'000'000}}) { // up to more than tREFI
      Setup setup = all_far(ddr4(), Engine::exact, page);
      std::vector<Command> commands;
      setup.commands[0] = &commands;
      run(setup, {Pattern::random, 8000, 64 * mib, 0.4, gap, 7});
      CAPTURE(gap);
      CHECK(check_timing(setup.far, commands).empty());
      const auto is_refresh = [](const Command& c) { return c.type == CommandType::refresh; };
      const auto second =
          std::find_if(std::find_if(commands.begin(), commands.end(), is_refresh) + 1,
                       commands.end(), is_refresh);
      REQUIRE(second != commands.end());
      commands.erase(second);
      const std::vector<Violation> found = check_timing(setup.far, commands);
      REQUIRE(!found.empty());
      CHECK(found[0].rule == "tREFI");
    }
}

TEST_CASE("every rank is refreshed once per tREFI") {
  for (const Engine engine : {Engine::fast, Engine::exact}) {
    Setup setup = all_far(ddr4(), engine);
    const Outcome o = run(setup, {Pattern::random, 20'000, 64 * mib, 0.3, 50'000, 3});
    const double due = 2 * static_cast<double>(o.end) / static_cast<double>(setup.far.timing.tREFI);
    CHECK(static_cast<double>(o.tiers[0].activity.refreshes) == doctest::Approx(due).epsilon(0.02));
  }
}

TEST_CASE("a row that was opened for a request is used before another request closes it") {
  for (const double writes : {0.0, 0.3, 0.6}) {
    const Synthetic what{Pattern::random, 30'000, 64 * mib, writes, 0, 5};
    const auto misses = [](const Activity& activity) {
      return activity.reads + activity.writes - activity.row_hits;
    };
    const Activity without = run(all_far(unrefreshed(), Engine::exact), what).tiers[0].activity;
    CAPTURE(writes);
    CHECK(without.activates == misses(without));
    // A refresh closes the rows of its rank; those opened less than tRCD before it may be unused,
    // which are at most four as long as tRCD is less than tFAW.
    const Activity with = run(all_far(ddr4(), Engine::exact), what).tiers[0].activity;
    CHECK(with.refreshes > 0);
    CHECK(with.activates >= misses(with));
    CHECK(with.activates <= misses(with) + 4 * with.refreshes);
  }
}

TEST_CASE("dependent reads wait for one another, independent ones overlap") {
  for (const Engine engine : {Engine::fast, Engine::exact}) {
    Setup setup = all_far(ddr4(), engine);
    const Outcome chase = run(setup, {Pattern::chase, 5000, 64 * mib, 0, 0, 5});
    const Outcome random = run(setup, {Pattern::random, 5000, 64 * mib, 0, 0, 5});
    CHECK(chase.end > 4 * random.end);
  }
}

TEST_CASE("random lines of a large region are not row hits, for few and for many requests") {
  for (const Engine engine : {Engine::fast, Engine::exact})
    for (const std::uint64_t count : {2'000u, 50'000u}) {
      const Outcome o = run(all_far(ddr4(), engine), {Pattern::random, count, 1024 * mib, 0, 0, 5});
      CHECK(static_cast<double>(o.tiers[0].activity.row_hits) < 0.02 * static_cast<double>(count));
    }
}

TEST_CASE("prefetches do not use the window of demand accesses") {
  for (const Engine engine : {Engine::fast, Engine::exact}) {
    Setup setup = all_far(ddr4(), engine);
    setup.core.window = 1;
    std::vector<Request> requests = in_turns(1, 0, 20'000, 0, 0);
    const Outcome demanded = run(setup, requests);
    for (Request& request : requests)
      request.prefetch = true;
    const Outcome prefetched = run(setup, requests);
    CHECK(demanded.end > 4 * prefetched.end);
    const double peak = 20'000 * static_cast<double>(setup.far.timing.burst);
    CHECK(peak / static_cast<double>(prefetched.end) > 0.92); // except during refreshes
    CHECK(prefetched.tiers[0].reads == 20'000);
  }
}

TEST_CASE("a window out of range is refused") {
  Setup setup = all_far(ddr4(), Engine::fast);
  setup.core.window = 0;
  SyntheticSource source({Pattern::random, 1, mib, 0, 0, 1});
  CHECK(!simulate(source, setup));
}

TEST_CASE("a second command bus does not slow down reads among posted writes") {
  // With two buses, the row commands of a drain that starts while no read waits could be issued
  // before the column commands of reads that did wait then, which cost a change of direction.
  std::vector<Request> requests(12'000);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].address = (i % 3 * ((1u << 24) / 3) + i / 3) * line_bytes; // three banks
    requests[i].write = i % 3 == 2;
  }
  Time ends[2] = {};
  for (const unsigned buses : {1u, 2u}) {
    Setup setup = all_far(hbm2(buses), Engine::exact);
    setup.core.window = 16;
    setup.far_controller.drain_from = 26;
    setup.far_controller.drain_to = 6;
    setup.far_controller.mapping = *parse_mapping("robabgracoch");
    std::vector<Command> commands;
    setup.commands[0] = &commands;
    ends[buses - 1] = run(setup, requests, true).end;
    CHECK(check_timing(setup.far, commands).empty());
  }
  CHECK(ends[1] <= ends[0]);
}
