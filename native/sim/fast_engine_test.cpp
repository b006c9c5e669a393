// The fast engine against the exact one, and what it refuses.
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "sim/accuracy_sampler.hpp"
#include "sim/test_runs.hpp"

using namespace nearfar;
using namespace nearfar::sim;

TEST_CASE("the fast engine refuses what it does not model") {
  const auto refuses = [](auto change) {
    Setup setup = all_far(ddr4(), Engine::fast);
    change(setup);
    SyntheticSource source({Pattern::random, 10, mib, 0, 0, 1});
    return !simulate(source, setup);
  };
  CHECK(!refuses([](Setup&) {}));
  CHECK(refuses([](Setup& setup) { setup.far_controller.scheduler = Scheduler::fcfs; }));
  CHECK(refuses([](Setup& setup) { setup.far_controller.page = PagePolicy::timeout; }));
  CHECK(refuses([](Setup& setup) { setup.core.posted_writes = false; }));
}

TEST_CASE("fast against exact: time within 5 %, energy within 3 %, or refused") {
  const Device device = ddr4();
  int accepted = 0;
  for (const PagePolicy page : {PagePolicy::open, PagePolicy::closed})
    for (const Pattern pattern : {Pattern::sequential, Pattern::random, Pattern::chase})
      for (const double writes : {0.0, 0.3})
        for (const unsigned window : {1u, 10u}) {
          const Synthetic what{pattern, 30'000, 64 * mib, writes, 2000, 5};
          Setup setup = all_far(device, Engine::fast, page);
          setup.core.window = window;
          setup.accept_inexact = false;
          SyntheticSource source(what);
          Result<Outcome> fast = simulate(source, setup);
          if (!fast) continue;
          ++accepted;
          setup.engine = Engine::exact;
          const Outcome exact = run(setup, what);
          CAPTURE(static_cast<int>(page));
          CAPTURE(static_cast<int>(pattern));
          CAPTURE(writes);
          CAPTURE(window);
          CHECK(static_cast<double>(fast->end) ==
                doctest::Approx(static_cast<double>(exact.end)).epsilon(0.05));
          CHECK(fast->tiers[0].energy.total() ==
                doctest::Approx(exact.tiers[0].energy.total()).epsilon(0.03));
        }
  CHECK(accepted >= 12); // of 24
}

TEST_CASE("fast against exact: a bank group limits accesses to its banks, in each mapping") {
  for (const char* mapping :
       {"rorabacobgch", "rorabgcobach", "rochrababgco", "robgrabacoch", "rocorababgch"})
    for (const Pattern pattern : {Pattern::sequential, Pattern::random})
      for (const unsigned window : {1u, 4u, 10u}) {
        Setup setup = all_far(ddr4(), Engine::fast);
        setup.accept_inexact = false;
        Result<AddressMapping> parsed = parse_mapping(mapping);
        REQUIRE(parsed);
        setup.far_controller.mapping = *parsed;
        setup.core.window = window;
        const Synthetic what{pattern, 30'000, 64 * mib, 0, 0, 5};
        const Outcome fast = run(setup, what);
        setup.engine = Engine::exact;
        const Outcome exact = run(setup, what);
        CAPTURE(mapping);
        CAPTURE(static_cast<int>(pattern));
        CAPTURE(window);
        CHECK(static_cast<double>(fast.end) ==
              doctest::Approx(static_cast<double>(exact.end)).epsilon(0.05));
      }
}

TEST_CASE("fast against exact: strides and arrays in turns are within 5 %, or refused") {
  struct Stream {
    std::uint64_t streams; ///< arrays, a line of each in turns
    std::uint64_t stride;  ///< in lines
  };
  std::size_t accepted = 0;
  for (const char* mapping : {"rorabacobgch", "rochrababgco", "robgrabacoch", "rorababgchco"})
    for (const auto& [streams, stride] :
         {Stream{1, 4}, Stream{1, 16}, Stream{1, 65}, Stream{1, 128}, Stream{1, 1024}, Stream{2, 1},
          Stream{3, 1}})
      for (const unsigned window : {1u, 4u, 10u, 16u}) {
        Setup setup = all_far(ddr4(), Engine::fast);
        setup.accept_inexact = false;
        setup.far_controller.mapping = *parse_mapping(mapping);
        setup.core.window = window;
        std::vector<Request> requests(20'000);
        for (std::size_t i = 0; i < requests.size(); ++i)
          requests[i].address = (i % streams * (1 << 22) + i / streams * stride) * line_bytes;
        Listed source(requests, true);
        Result<Outcome> fast = simulate(source, setup);
        if (!fast) continue;
        ++accepted;
        setup.engine = Engine::exact;
        const Outcome exact = run(setup, requests, true);
        CAPTURE(mapping);
        CAPTURE(streams);
        CAPTURE(stride);
        CAPTURE(window);
        CHECK(static_cast<double>(fast->end) ==
              doctest::Approx(static_cast<double>(exact.end)).epsilon(0.05));
      }
  CHECK(accepted > 60); // of 112
}

TEST_CASE("the begin of a run and a part of each later stratum are sampled") {
  const Synthetic what{Pattern::sequential, 40'000, 64 * mib, 0, 0, 1};
  Setup setup = all_far(ddr4(), Engine::fast);
  CHECK(run(setup, what).sampled.requests == 0); // inexact results are accepted
  setup.accept_inexact = false;
  const SampledTimes sampled = run(setup, what).sampled;
  CHECK(sampled.requests >= 16384 + 4096);
  CHECK(sampled.requests <= 16384 + 2 * 4096);
  CHECK(std::abs(sampled.difference) < 0.01);
  CHECK(sampled.error < 0.01);
}

TEST_CASE("a run that is one sample is refused only if its time differs by more than 5 %") {
  const Synthetic what{Pattern::random, 10'000, 64 * mib, 0, 0, 1};
  Setup setup = all_far(ddr4(), Engine::fast);
  setup.accept_inexact = false;
  const Outcome fast = run(setup, what);
  CHECK(fast.sampled.requests == 10'000);
  CHECK(fast.sampled.error == 0);
  setup.engine = Engine::exact;
  const double exact = static_cast<double>(run(setup, what).end);
  CHECK(fast.sampled.difference ==
        doctest::Approx(static_cast<double>(fast.end) / exact - 1).epsilon(1e-9));
}

TEST_CASE("the error of samples is large if the engines differ more in some parts than in others") {
  Setup setup = all_far(ddr4(), Engine::fast);
  setup.core.window = 16;
  setup.far_controller.mapping = *parse_mapping("rochrababgco");
  const auto error_of = [&](bool changes) {
    AccuracySampler sampler(setup);
    for (std::uint64_t i = 0; i < 40'000; ++i) {
      const bool strided = changes && i / 2048 % 2; // in which the engines differ
      const PlacedAccess placed{strided ? i % 3 * (1 << 20) + i * 4 : i, false, false};
      sampler.issue({.address = placed.line * line_bytes}, placed, i * 3000);
    }
    Result<SampledTimes> times = sampler.finish(40'000 * 3000);
    REQUIRE(times);
    return times->error;
  };
  CHECK(error_of(false) < 0.005);
  CHECK(error_of(true) > 0.01);
}

TEST_CASE("the fast engine refuses traces that send more than the memory serves") {
  Setup setup = all_far(ddr4(), Engine::fast);
  setup.accept_inexact = false;
  setup.core.issue = Issue::trace_time;
  for (const Time gap : {Time{0}, Time{100'000}}) {
    SyntheticSource source({Pattern::random, 20'000, 64 * mib, 0, gap, 1});
    CHECK(static_cast<bool>(simulate(source, setup)) == (gap != 0));
  }
}

TEST_CASE("the fast engine refuses results in which it times posted writes otherwise") {
  const auto result_of = [](const Setup& setup, double writes, Time gap) {
    SyntheticSource source({Pattern::random, 20'000, 64 * mib, writes, gap, 1});
    return simulate(source, setup);
  };
  Setup setup = all_far(ddr4(), Engine::fast);
  setup.accept_inexact = false;
  const Result<Outcome> refused = result_of(setup, 0.4, 0);
  REQUIRE(!refused);
  CHECK(refused.error().code == Errc::bad_input);
  CHECK(std::string_view(refused.error().what).find("its time differs by") != std::string::npos);
  CHECK(result_of(setup, 0.04, 0));        // few writes
  CHECK(result_of(setup, 0.4, 1'000'000)); // an idle memory
  setup.accept_inexact = true;
  CHECK(result_of(setup, 0.4, 0));
  setup.accept_inexact = false;
  setup.engine = Engine::exact;
  CHECK(result_of(setup, 0.4, 0));
  setup.engine = Engine::fast;
  setup.core = {Issue::blocking, 1, false};
  CHECK(result_of(setup, 0.4, 0));
}

TEST_CASE("the fast engine refuses wide windows before it runs") {
  Setup setup = all_far(ddr4(), Engine::fast);
  setup.accept_inexact = false;
  for (const unsigned window : {32u, 33u}) {
    setup.core.window = window;
    SyntheticSource source({Pattern::sequential, 1000, mib, 0, 0, 1});
    CHECK(static_cast<bool>(simulate(source, setup)) == (window == 32));
  }
}
