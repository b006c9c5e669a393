#include "bench/compete.hpp"

#include <doctest/doctest.h>
#include <string>

#include "test_support.hpp"

using namespace nearfar;
using bench::CompeteBench;
using bench::CompeteRun;
using bench::CompeteThread;
using bench::Copy;

namespace {

constexpr std::size_t elements = 2'003;

tier::Spec spec(const std::string& text) {
  Result<tier::Spec> parsed = tier::parse(text.c_str());
  REQUIRE(bool(parsed));
  return *parsed;
}

CompeteThread thread(bool far, std::uint64_t start_ns, const std::vector<std::uint64_t>& ends_ns) {
  CompeteThread made;
  made.far = far;
  made.start_ns = start_ns;
  for (const std::uint64_t end : ends_ns) {
    bench::Mark mark;
    mark.usage.wall_ns = end - start_ns;
    made.marks.push_back(mark);
  }
  return made;
}

} // namespace

TEST_CASE("every direction copies everything, each iteration is noted, for any team") {
  const test::Folder folder;
  const int cpu = test::usable_cpu();
  for (const Copy copy : {Copy::far_far, Copy::far_near, Copy::near_far})
    for (const auto& team :
         {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 0}, {0, 1}}) { // clang 14 cannot capture a binding
      const auto near = team.first;
      const auto far = team.second;
      CAPTURE(near);
      CAPTURE(far);
      const std::vector<int> near_cpus(static_cast<std::size_t>(near), cpu);
      const std::vector<int> far_cpus(static_cast<std::size_t>(far), cpu);
      Result<CompeteBench> made = CompeteBench::create(
          copy, spec("dram"), spec("file:" + folder.path()), elements, near_cpus, far_cpus);
      REQUIRE(bool(made));
      CHECK(!made->check()); // nothing has been copied yet
      // Two threads of one processor take turns: enough iterations for each to have several.
      Result<CompeteRun> run = made->run(20'000);
      REQUIRE(bool(run));
      CHECK(bool(made->check()));
      REQUIRE(run->threads.size() == static_cast<std::size_t>(near + far));
      CHECK((run->near_bytes_per_s > 0) == (near > 0));
      CHECK((run->far_bytes_per_s > 0) == (far > 0));
      std::size_t most = 0;
      for (std::size_t i = 0; i < run->threads.size(); ++i) {
        const CompeteThread& t = run->threads[i];
        CHECK(t.far == (i >= static_cast<std::size_t>(near)));
        most = std::max(most, t.marks.size());
        for (std::size_t k = 1; k < t.marks.size(); ++k) {
          CHECK(t.marks[k].usage.wall_ns >= t.marks[k - 1].usage.wall_ns);
          CHECK(t.marks[k].steal_ns >= t.marks[k - 1].steal_ns);
        }
      }
      CHECK(most == 20'000); // the first to finish made them all
    }
}

TEST_CASE("rates are those of the span in which all threads ran, cut iterations by their share") {
  CompeteRun run;
  run.threads.push_back(thread(false, 100, {200, 300, 400}));
  run.threads.push_back(thread(false, 0, {250, 500}));
  run.threads.push_back(thread(true, 200, {600}));
  bench::sum_up(run, 1000);
  CHECK(run.from_ns == 200);
  CHECK(run.to_ns == 400);
  // near: two whole iterations, then 50/250 and 150/250 of one; far: half of one; in 200 ns
  CHECK(run.near_bytes_per_s == doctest::Approx((2.0 + 0.2 + 0.6) * 1000 / 200e-9));
  CHECK(run.far_bytes_per_s == doctest::Approx(0.5 * 1000 / 200e-9));
}

TEST_CASE("what makes no sense is refused, and nothing is left") {
  const test::Folder folder;
  const tier::Spec near = spec("dram");
  const tier::Spec far = spec("file:" + folder.path());
  const std::vector<int> one = {test::usable_cpu()};
  const std::vector<int> missing = {test::missing_cpu};
  Result<CompeteBench> without_threads =
      CompeteBench::create(Copy::far_far, near, far, elements, {}, {});
  REQUIRE(!without_threads);
  CHECK(without_threads.error().code == Errc::bad_input);
  Result<CompeteBench> nowhere =
      CompeteBench::create(Copy::far_far, near, far, elements, one, missing);
  REQUIRE(!nowhere);
  CHECK(nowhere.error().code == Errc::bad_input);
  Result<CompeteBench> huge =
      CompeteBench::create(Copy::far_far, near, far, std::size_t{1} << 55, one, one);
  REQUIRE(!huge);
  CHECK(huge.error().code == Errc::no_space);
  CHECK(folder.empty());
  Result<CompeteBench> good = CompeteBench::create(Copy::far_far, near, far, elements, one, {});
  REQUIRE(bool(good));
  CHECK(!good->run(0));
}
