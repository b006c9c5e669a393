// Power-down and self-refresh in the exact engine: times and energies computed by hand, and the
// checker.
#include <algorithm>

#include "sim/checker.hpp"
#include "sim/test_runs.hpp"

using namespace nearfar;
using namespace nearfar::sim;

namespace {

constexpr Time ns = 1000;

/// DDR4 of one rank with power states.
Device with_power_states(double refresh_interval = 0) {
  Figures figures = ddr4_figures();
  for (auto& [name, value] : figures) {
    if (name == "ranks") value = 1;
    if (name == "tREFI") value = refresh_interval;
    if (name == "tRFC" && refresh_interval == 0) value = 0;
  }
  figures.insert(figures.end(), {{"tXP", 10},
                                 {"tXS", 576},
                                 {"tCKE", 8},
                                 {"tCKESR", 9},
                                 {"active_power_down_W", 0.4},
                                 {"power_down_W", 0.2},
                                 {"self_refresh_W", 0.1}});
  return made("power states", MemoryKind::commands, figures);
}

/// Two reads of one row, `gap` apart.
std::vector<Request> two_reads(Time gap) {
  std::vector<Request> requests(2);
  requests[1].gap = gap;
  return requests;
}

constexpr Time read_done = 48 * ns; // tRCD + CL + burst

Setup one_at_a_time(const Device& device) {
  Setup setup = all_far(device, Engine::exact);
  setup.core.issue = Issue::blocking;
  return setup;
}

} // namespace

TEST_CASE("a rank powers down after some idle time, and takes tXP to wake") {
  Setup setup = one_at_a_time(with_power_states());
  setup.far_controller.power_down_after = 100 * ns;
  const Outcome o = run(setup, two_reads(1000 * ns), true);
  const Time second = 1000 * ns + (10 + 22 + 4) * ns; // tXP, CL, burst
  CHECK(o.end == read_done + second);
  const Activity& activity = o.tiers[0].activity;
  CHECK(activity.active_power_down == (1000 - 100) * ns);
  CHECK(activity.power_down == 0);
  CHECK(activity.row_hits == 1);
  const double awake_s = static_cast<double>(o.end - activity.active_power_down) * 1e-12;
  CHECK(o.tiers[0].energy.background == doctest::Approx(awake_s * 0.5 + 900e-9 * 0.4));
}

TEST_CASE("a rank with closed rows powers down to the lower power") {
  Setup setup = one_at_a_time(with_power_states());
  setup.far_controller.page = PagePolicy::closed;
  setup.far_controller.power_down_after = 0;
  const Outcome o = run(setup, two_reads(1000 * ns), true);
  const Time closed_at = (52 + 22) * ns; // tRAS, tRP
  CHECK(o.tiers[0].activity.power_down == read_done + 1000 * ns - closed_at);
  CHECK(o.tiers[0].activity.active_power_down == 0);
  CHECK(o.end == read_done + 1000 * ns + 10 * ns + read_done);
}

TEST_CASE("self-refresh closes the rows, takes tXS to leave, and replaces refreshes") {
  Setup setup = one_at_a_time(with_power_states(12480));
  setup.far_controller.self_refresh_after = 200 * ns;
  const Time gap = 100'000 * ns; // eight tREFI
  const Outcome o = run(setup, two_reads(gap), true);
  CHECK(o.end == read_done + gap + 576 * ns + read_done);
  const Activity& activity = o.tiers[0].activity;
  CHECK(activity.self_refresh == gap - (200 + 22) * ns); // tRP
  CHECK(activity.refreshes == 0);
  CHECK(activity.row_hits == 0);
  CHECK(activity.active == (read_done + 200 * ns) + (22 + 22 + 4) * ns);
}

TEST_CASE("a powered-down rank wakes for refreshes, and a short idle time does not power it down") {
  Setup setup = one_at_a_time(with_power_states(12480));
  setup.far_controller.power_down_after = 1000 * ns;
  std::vector<Command> commands;
  setup.commands[0] = &commands;
  run(setup, two_reads(100'000 * ns), true);
  const auto count = [&](CommandType type) {
    return std::count_if(commands.begin(), commands.end(),
                         [type](const Command& c) { return c.type == type; });
  };
  CHECK(count(CommandType::refresh) == 8);
  CHECK(count(CommandType::wake) == 8); // when the read arrives, the last refresh is in progress
  commands.clear();
  run(setup, two_reads(1000 * ns), true);
  CHECK(count(CommandType::power_down) == 0);
}

TEST_CASE("a device without figures of a state does not enter it") {
  Setup setup = one_at_a_time(ddr4());
  const Time awake = run(setup, two_reads(1000 * ns), true).end;
  setup.far_controller.power_down_after = setup.far_controller.self_refresh_after = 0;
  const Outcome o = run(setup, two_reads(1000 * ns), true);
  CHECK(o.end == awake);
  CHECK(o.tiers[0].activity.power_down + o.tiers[0].activity.self_refresh == 0);
}

TEST_CASE("the exact engine violates no timing rule, for all power states") {
  for (const double sets : {1.0, 4.0})
    for (const PagePolicy page : {PagePolicy::open, PagePolicy::closed, PagePolicy::timeout})
      for (const Time down : {Time{0}, 60 * ns, never})
        for (const Time refreshing : {Time{0}, 500 * ns, 20'000 * ns, never})
          for (const Time gap : {10 * ns, 300 * ns, 3000 * ns}) {
            Figures figures = ddr4_figures();
            figures.insert(
                figures.end(),
                {{"tXP", 10}, {"tXS", 576}, {"tCKE", 8}, {"tCKESR", 9}, {"refresh_sets", sets}});
            Setup setup =
                all_far(made("power", MemoryKind::commands, figures), Engine::exact, page);
            setup.core.window = 4;
            setup.far_controller.power_down_after = down;
            setup.far_controller.self_refresh_after = refreshing;
            std::vector<Command> commands;
            setup.commands[0] = &commands;
            const Outcome o = run(setup, {Pattern::random, 1500, 8 * mib, 0.4, gap, 7});
            const Activity& activity = o.tiers[0].activity;
            CHECK(activity.reads + activity.writes == 1500);
            const Time end = std::max(o.end, commands.back().at + 100 * ns); // posted writes
            CHECK(activity.active + activity.power_down + activity.self_refresh <= 2 * end);
            CHECK(activity.active_power_down <= activity.active);
            CAPTURE(sets);
            CAPTURE(static_cast<int>(page));
            CAPTURE(down);
            CAPTURE(refreshing);
            CAPTURE(gap);
            const std::vector<Violation> found = check_timing(setup.far, commands);
            CHECK_MESSAGE(found.empty(), (found.empty() ? "" : found[0].rule));
          }
}
