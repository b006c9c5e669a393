#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "sample/sample_cost.hpp"
#include "sample/sampler.hpp"

using namespace nearfar;
using namespace nearfar::sample;

namespace {

/// Whether this machine permits samples; a reason is printed if not.
bool permitted(Result<Sampler>& sampler) {
  if (sampler) return true;
  MESSAGE("not tested: " << sampler.error().what);
  return false;
}

void run(Sampler& sampler, std::vector<const char*> command) {
  command.push_back(nullptr);
  pid_t child = 0;
  REQUIRE(posix_spawnp(&child, command[0], nullptr, nullptr,
                       const_cast<char* const*>(command.data()), environ) == 0);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    sampler.poll();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  sampler.poll();
}

std::uint64_t clock_samples(const Sampler& sampler) {
  std::uint64_t count = 0;
  for (const Sample& sample : sampler.samples())
    count += sample.kind == SampleKind::clock;
  return count;
}

double child_user_ns() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) * 1e9 +
         static_cast<double>(usage.ru_utime.tv_usec) * 1e3;
}

bool has_program(const Sampler& sampler, const std::string& name) {
  for (const SampledProgram& program : sampler.programs())
    if (program.name == name && program.samples > 0) return true;
  return false;
}

} // namespace

TEST_CASE("a program and those that it starts are sampled in proportion to their CPU time") {
  Result<Sampler> sampler = Sampler::open({200'000, 16});
  if (!permitted(sampler)) return;
  run(*sampler, {"sh", "-c", "awk 'BEGIN { for (i = 0; i < 3000000; i++) s += i }'; :"});
  const std::uint64_t count = clock_samples(*sampler);
  CHECK(count > 20);
  CHECK(sampler->lost() == 0);
  CHECK((has_program(*sampler, "awk") || has_program(*sampler, "mawk")));
  std::size_t in_files = 0;
  for (const CodeLocation& place : sampler->code())
    in_files += place.file != 0;
  CHECK(in_files * 10 >= sampler->code().size() * 9);
}

TEST_CASE("one page fault in so many is sampled, and stands for them") {
  Result<Sampler> sampler = Sampler::open({1'000'000, 16});
  if (!permitted(sampler)) return;
  run(*sampler, {"awk", "BEGIN { for (i = 0; i < 300000; i++) a[i] = i }"});
  std::uint64_t faults = 0;
  for (const Sample& sample : sampler->samples()) {
    if (sample.kind != SampleKind::fault) continue;
    ++faults;
    CHECK(sample.period == 16);
  }
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  CHECK(faults > 0);
  CHECK(faults * 8 < static_cast<std::uint64_t>(usage.ru_minflt)); // of all children so far
}

TEST_CASE("bursts sample a share of the time, of programs that start in a pause, too") {
  SamplerOptions options{200'000, 16};
  options.max_cost = 1e-9; // less than any machine can: the least share
  Result<Sampler> sampler = Sampler::open(options);
  if (!permitted(sampler)) return;
  const double before = child_user_ns();
  run(*sampler, {"sh", "-c",
                 "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do"
                 "  awk 'BEGIN { for (i = 0; i < 1500000; i++) s += i }'; "
                 "done"});
  const double share = sampler->enabled_share();
  CHECK(share < 3 * least_share); // readings are late on a machine with other work
  CHECK(sampler->bursts().size() > 1);
  const double sampled_ns = static_cast<double>(clock_samples(*sampler)) * 200'000 / share;
  const double used_ns = child_user_ns() - before;
  CHECK(sampled_ns > used_ns / 2);
  CHECK(sampled_ns < used_ns * 2);
  std::size_t programs = 0;
  for (const SampledProgram& program : sampler->programs())
    programs += program.name == "awk" || program.name == "mawk";
  CHECK(programs == 15); // their names are known in pauses, too
  for (const Sample& sample : sampler->samples())
    CHECK(sample.process != getpid());
}

TEST_CASE("a sample costs its program less than a period, and more than nothing") {
  perf_event_attr clock{};
  clock.type = PERF_TYPE_SOFTWARE;
  clock.config = PERF_COUNT_SW_CPU_CLOCK;
  clock.sample_period = 500'000;
  clock.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME;
  clock.exclude_kernel = 1;
  Result<Sampler> sampler = Sampler::open({});
  if (!permitted(sampler)) return;
  const std::uint64_t cost_ns = sample_cost_ns(clock);
  CHECK(cost_ns > 100);
  CHECK(cost_ns < 500'000);
}

TEST_CASE("nothing is sampled of the thread that starts programs, nor after stop()") {
  Result<Sampler> sampler = Sampler::open({200'000, 16});
  if (!permitted(sampler)) return;
  volatile unsigned long sum = 0;
  for (unsigned long i = 0; i < 50'000'000; ++i)
    sum = sum + i;
  sampler->poll();
  CHECK(clock_samples(*sampler) == 0);
  sampler->stop();
  run(*sampler, {"awk", "BEGIN { for (i = 0; i < 1000000; i++) s += i }"});
  CHECK(clock_samples(*sampler) == 0);
}

TEST_CASE("a running process is sampled with threads that it has and starts") {
  bool per_cpu_clock = false;
  SUBCASE("by a clock of each CPU, where the kernel permits it") { per_cpu_clock = true; }
  SUBCASE("by a clock of each thread") {}
  std::atomic<bool> done{false};
  std::vector<std::uint64_t> table(1 << 20, 1);
  const auto work = [&] {
    volatile std::uint64_t sum = 0;
    for (std::uint64_t i = 0; !done; i = i * 6364136223846793005u + 1)
      sum = sum + table[(i >> 40) % table.size()];
  };
  std::thread before(work);
  Result<Sampler> sampler = Sampler::attach(getpid(), {200'000, 16, per_cpu_clock});
  std::thread after(work);
  if (sampler)
    for (int i = 0; i < 40; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      sampler->poll();
    }
  done = true;
  before.join();
  after.join();
  if (!permitted(sampler)) return;
  const auto first = reinterpret_cast<std::uint64_t>(table.data());
  std::size_t in_table = 0;
  std::vector<std::int32_t> threads;
  for (const Sample& sample : sampler->samples()) {
    in_table += sample.address >= first && sample.address < first + (8u << 20);
    if (std::find(threads.begin(), threads.end(), sample.thread) == threads.end())
      threads.push_back(sample.thread);
  }
  CHECK(in_table > 10);
  CHECK(threads.size() >= 2);
}

TEST_CASE("memory that a running process moved is known") {
  constexpr std::size_t words = 1 << 20;
  constexpr std::size_t bytes = words * sizeof(std::uint64_t);
  void* old = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(old != MAP_FAILED);
  std::memset(old, 1, bytes);
  Result<Sampler> sampler = Sampler::attach(getpid(), {200'000, 0, true});
  auto* nowhere = reinterpret_cast<void*>(std::uintptr_t{1} << 45); // the kernel maps from above
  void* moved = mremap(old, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, nowhere);
  REQUIRE(moved != MAP_FAILED);
  std::atomic<bool> done{false};
  std::thread work([&] {
    const auto* table = static_cast<const std::uint64_t*>(moved);
    volatile std::uint64_t sum = 0;
    for (std::uint64_t i = 0; !done; i = i * 6364136223846793005u + 1)
      sum = sum + table[(i >> 40) % words];
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::size_t known = 0;
  for (int i = 0; i < 300 && known == 0 && sampler; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    sampler->poll();
    const auto first = reinterpret_cast<std::uint64_t>(moved);
    for (const Sample& sample : sampler->samples())
      known += sample.address >= first && sample.address < first + bytes;
  }
  done = true;
  work.join();
  munmap(moved, bytes);
  if (!permitted(sampler)) return;
  CHECK(known > 0);
}

TEST_CASE("of a running process, its children are sampled and other programs are not") {
  const auto start = [](const char* script) {
    const char* command[] = {"sh", "-c", script, nullptr};
    pid_t child = 0;
    REQUIRE(posix_spawnp(&child, "sh", nullptr, nullptr, const_cast<char* const*>(command),
                         environ) == 0);
    return child;
  };
  const pid_t wanted =
      start("for n in 1 2 3 4 5 6; do awk 'BEGIN { for (i = 0; i < 1000000; i++) s += i }'; done");
  const pid_t other = start("while :; do :; done");
  Result<Sampler> sampler = Sampler::attach(wanted, {200'000, 0});
  while (waitpid(wanted, nullptr, WNOHANG) == 0) {
    if (sampler) sampler->poll();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  if (!permitted(sampler)) return;
  sampler->poll();
  CHECK(clock_samples(*sampler) > 20);
  CHECK((has_program(*sampler, "awk") || has_program(*sampler, "mawk")));
  for (const Sample& sample : sampler->samples())
    CHECK(sample.process != other);
}

TEST_CASE("a process that is not there cannot be sampled") {
  Result<Sampler> sampler = Sampler::attach(999'999'999, {200'000, 16});
  REQUIRE_FALSE(sampler);
  CHECK(sampler.error().code == Errc::not_found);
}
