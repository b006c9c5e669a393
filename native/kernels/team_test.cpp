#include "kernels/team.hpp"

#include <atomic>
#include <doctest/doctest.h>
#include <sched.h>

#include "test_support.hpp"

using namespace nearfar;

namespace {
cpu_set_t affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  return set;
}
} // namespace

TEST_CASE("each member runs its share once, on its processor, and notes when") {
  const int cpu = test::usable_cpu();
  const std::vector<int> cpus(3, cpu); // more threads than processors must not get stuck
  std::vector<int> ran_on(cpus.size(), -1);
  std::atomic<int> runs{0};
  Result<kernels::TeamRun> run = kernels::run_team(cpus, [&](std::size_t member) {
    ran_on[member] = sched_getcpu();
    ++runs;
  });
  REQUIRE(bool(run));
  CHECK(runs == 3);
  CHECK(ran_on == cpus);
  REQUIRE(run->members.size() == 3);
  for (const kernels::Member& member : run->members) {
    CHECK(member.start_ns > 0);
    CHECK(member.end_ns >= member.start_ns);
    CHECK(member.usage.wall_ns >= member.end_ns - member.start_ns);
  }
}

TEST_CASE("the caller's own processors stay as they were") {
  const cpu_set_t before = affinity();
  const int cpu = test::usable_cpu();
  REQUIRE(bool(kernels::run_team({&cpu, 1}, [](std::size_t) {})));
  const cpu_set_t after = affinity();
  CHECK(CPU_EQUAL(&before, &after));
}

TEST_CASE("a processor that cannot be used is refused, and no work was run") {
  for (const int bad : {test::missing_cpu, -1, CPU_SETSIZE}) {
    const std::vector<int> cpus = {test::usable_cpu(), bad};
    std::atomic<int> runs{0};
    Result<kernels::TeamRun> run = kernels::run_team(cpus, [&](std::size_t) { ++runs; });
    REQUIRE(!run);
    CHECK(run.error().code == Errc::bad_input);
    CHECK(std::string(run.error().what).find(std::to_string(bad)) != std::string::npos);
    CHECK(std::string(run.error().next) != "");
    CHECK(runs == 0);
  }
}

TEST_CASE("the span is from the first start to the last end") {
  kernels::TeamRun run;
  run.members.resize(2);
  run.members[0].start_ns = 1'000;
  run.members[0].end_ns = 3'000;
  run.members[1].start_ns = 2'000;
  run.members[1].end_ns = 5'000;
  CHECK(run.seconds() == doctest::Approx(4e-6));
}

TEST_CASE("processor time of a member is that of its work") {
  const int cpu = test::usable_cpu();
  Result<kernels::TeamRun> run = kernels::run_team({&cpu, 1}, [](std::size_t) {
    const std::uint64_t end = os::thread_cpu_ns() + 5'000'000;
    while (os::thread_cpu_ns() < end) {
    }
  });
  REQUIRE(bool(run));
  CHECK(run->members[0].usage.cpu_ns >= 5'000'000);
  CHECK(run->seconds() >= 5e-3);
}
