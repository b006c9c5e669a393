#include "bench/pipeline.hpp"

#include <atomic>
#include <doctest/doctest.h>
#include <string>
#include <thread>

#include "test_support.hpp"

using namespace nearfar;
using bench::PipelineBench;
using bench::PipelineRun;

namespace {

tier::Spec spec(const std::string& text) {
  Result<tier::Spec> parsed = tier::parse(text.c_str());
  REQUIRE(bool(parsed));
  return *parsed;
}

Result<PipelineBench> make(std::size_t elements, const std::string& far, std::size_t near_count,
                           std::size_t far_count) {
  const int cpu = test::usable_cpu();
  return PipelineBench::create(elements, spec("dram"), spec(far), std::vector<int>(near_count, cpu),
                               std::vector<int>(far_count, cpu), 7);
}

} // namespace

TEST_CASE("every split and tier finds in every iteration what near threads alone find") {
  const test::Folder folder;
  for (const std::size_t elements : {1u, 3u, 4096u, 20'011u}) {
    Result<PipelineBench> alone = make(elements, "dram", 1, 0);
    REQUIRE(bool(alone));
    Result<PipelineRun> expected = alone->run(12);
    REQUIRE(bool(expected));
    CHECK(expected->transfer_ns == 0);
    for (const std::string& far : {std::string("dram"), "file:" + folder.path()})
      for (const auto& team :
           {std::pair{1u, 1u}, {2u, 1u}, {1u, 2u}, {3u, 0u}}) { // clang 14 cannot capture a binding
        const auto near = team.first;
        const auto away = team.second;
        CAPTURE(elements);
        CAPTURE(near);
        CAPTURE(away);
        Result<PipelineBench> made = make(elements, far, near, away);
        REQUIRE(bool(made));
        for (int again = 0; again < 2; ++again) { // each run starts from the first vector
          Result<PipelineRun> run = made->run(12);
          REQUIRE(bool(run));
          CHECK(run->findings == expected->findings);
          CHECK(run->total_ns >= run->generate_ns + run->generate_idle_ns);
          CHECK(run->near_laps.size() == 2 * bench::kept_iterations);
          CHECK(run->far_laps.size() == (away == 0 ? 0 : 3 * bench::kept_iterations));
          for (const std::vector<bench::Lap>* laps : {&run->near_laps, &run->far_laps})
            for (std::size_t i = 1; i < laps->size(); ++i)
              CHECK((*laps)[i].began_ns >= (*laps)[i - 1].ended_ns);
          CHECK(run->total_ns >= run->transfer_ns + run->analyse_ns + run->transfer_idle_ns);
        }
      }
  }
}

TEST_CASE("vectors converge under damping, and stay within the first one's range") {
  Result<PipelineBench> made = make(5'000, "dram", 1, 1);
  REQUIRE(bool(made));
  Result<PipelineRun> run = made->run(30);
  REQUIRE(bool(run));
  for (std::size_t i = 1; i < 30; ++i) {
    const bench::Finding& found = run->findings[i];
    CHECK(found.change <= run->findings[i - 1].change * kernels::damping * 1.0000001);
    CHECK(found.change > 0);
    CHECK(found.analysis.smallest >= 0);
    CHECK(found.analysis.largest < 1);
    CHECK(found.analysis.step <= found.analysis.largest - found.analysis.smallest);
  }
}

TEST_CASE("what makes no sense is refused, nothing is left") {
  const test::Folder folder;
  const std::string file = "file:" + folder.path();
  const auto code = [&](std::size_t elements, std::size_t near, std::size_t far) {
    Result<PipelineBench> made = make(elements, file, near, far);
    REQUIRE(!made);
    CHECK(std::string(made.error().next) != "");
    return made.error().code;
  };
  CHECK(code(0, 1, 1) == Errc::bad_input);
  CHECK(code(100, 0, 1) == Errc::bad_input);
  CHECK(code(std::size_t{1} << 33, 1, 1) == Errc::bad_input);
  CHECK(folder.empty());
}

TEST_CASE("a run that is stopped ends early, and the next one is whole") {
  for (const std::size_t far : {0u, 2u}) {
    Result<PipelineBench> bench = make(50'000, "dram", 2, far);
    REQUIRE(bool(bench));
    std::atomic<bool> ended = false;
    std::jthread stopper([&] {
      while (!ended)
        bench->stop();
    });
    Result<PipelineRun> stopped = bench->run(1'000'000);
    ended = true;
    stopper.join();
    CHECK_FALSE(bool(stopped));
    Result<PipelineRun> next = bench->run(3);
    REQUIRE(bool(next));
    CHECK(next->findings.size() == 3);
  }
}
