// A link before the memory: its latency, bandwidth, requests in flight and load curve.
#include <vector>

#include "sim/test_runs.hpp"

using namespace nearfar;
using namespace nearfar::sim;

TEST_CASE("a link adds its latency, and bounds bandwidth and requests in flight") {
  for (const Engine engine : {Engine::fast, Engine::exact}) {
    Figures figures = ddr4_figures();
    figures.emplace_back("link_latency", 70);
    figures.emplace_back("link_bandwidth", 8e9); // 8 ns a line
    Setup setup = all_far(made("cxl", MemoryKind::commands, figures), engine);
    setup.core.issue = Issue::blocking;
    const Timing& t = setup.far.timing;
    CHECK(run(setup, {Pattern::sequential, 1, mib, 0, 0, 1}).end ==
          t.tRCD + t.CL + t.burst + 140'000 + 8'000);
    setup.core = {Issue::window, 64, true};
    const Outcome stream = run(setup, {Pattern::sequential, 20'000, 64 * mib, 0, 0, 1});
    CHECK(static_cast<double>(stream.end) == doctest::Approx(20'000 * 8e3).epsilon(0.05));
    figures.emplace_back("link_queue_depth", 4);
    setup.near = setup.far = made("cxl", MemoryKind::commands, figures);
    const Outcome four = run(setup, {Pattern::random, 20'000, 64 * mib, 0, 0, 1});
    setup.near = setup.far = made("cxl", MemoryKind::commands, figures);
    CHECK(static_cast<double>(four.end) > 20'000 * (140e3 + 30e3) / 4);
  }
}

TEST_CASE("the latency of a link follows its load") {
  // A line each 8 ns; half-way between the two loads that are known.
  const Time gap = 8'000;
  const double load = line_bytes / (static_cast<double>(gap) * 1e-12);
  Figures figures = ddr4_figures();
  std::erase_if(figures, [](const auto& f) { return f.first == "tRFC" || f.first == "tREFI"; });
  const Device bare = made("bare", MemoryKind::commands, figures);
  figures.insert(figures.end(), {{"link_bandwidth", 64e9},
                                 {"link_load0_bandwidth", load / 2},
                                 {"link_load0_latency", 70},
                                 {"link_load1_bandwidth", load * 3 / 2},
                                 {"link_load1_latency", 170}});
  for (const Engine engine : {Engine::fast, Engine::exact})
    for (const double writes : {0.0, 1.0}) {
      Setup setup = all_far(made("cxl", MemoryKind::commands, figures), engine);
      setup.core.issue = Issue::trace_time;
      setup.core.posted_writes = false;
      const Synthetic light{Pattern::sequential, 2000, 64 * mib, writes, 100 * gap, 1};
      const Synthetic loaded{Pattern::sequential, 20'000, 64 * mib, writes, gap, 1};
      const auto mean = [&](const Synthetic& what, const Device& device) {
        Setup other = setup;
        other.far = device;
        const Outcome o = run(other, what);
        return static_cast<double>(writes > 0 ? o.end : o.tiers[0].read_time / o.tiers[0].reads);
      };
      CAPTURE(writes);
      const double line = line_bytes / 64e9 * 1e12;
      CHECK(mean(light, setup.far) - mean(light, bare) ==
            doctest::Approx(2 * 70e3 + line).epsilon(0.02));
      CHECK(mean(loaded, setup.far) - mean(loaded, bare) ==
            doctest::Approx(2 * 120e3 + line).epsilon(0.05));
    }
}
