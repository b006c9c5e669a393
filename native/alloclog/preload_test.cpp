// The preloaded library in programs of C and C++, looked up from this process.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <doctest/doctest.h>
#include <map>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "alloclog/log.hpp"
#include "test_support.hpp"

namespace {

using namespace nearfar::alloclog;

constexpr std::uint64_t function_bytes = 256; // test_programs/report.h

struct Reported {
  std::string label;
  std::uint64_t address;
  std::uint64_t function;
};

/// A test program under a log.
class Program {
public:
  /// Without a log: as it is.
  Program(const AllocationLog* log, const char* path, const char* scenario) {
    int to[2];
    int from[2];
    REQUIRE(pipe(to) == 0);
    REQUIRE(pipe(from) == 0);
    const std::string value = log == nullptr ? "" : log->variable_value();
    pid_ = fork();
    if (pid_ == 0) {
      dup2(to[0], 0);
      dup2(from[1], 1);
      if (log != nullptr) setenv("LD_PRELOAD", NEARFAR_ALLOCATION_LOG_LIBRARY, 1);
      if (log != nullptr) setenv(variable, value.c_str(), 1);
      close_range(3, ~0u, 0);
      execl(path, path, scenario, nullptr);
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    input_ = to[1];
    output_ = fdopen(from[0], "r");
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (pid_ > 0) kill(pid_, SIGKILL);
    end();
    close(input_);
    std::fclose(output_);
  }

  /// Reads until the program waits; false if it ended instead. `shown_by` is the process.
  bool next(std::vector<Reported>& reported, pid_t& shown_by) {
    reported.clear();
    char label[64];
    std::uint64_t address = 0;
    std::uint64_t function = 0;
    char line[256];
    while (std::fgets(line, sizeof line, output_) != nullptr) {
      if (std::sscanf(line, "show %lu", &address) == 1) {
        shown_by = static_cast<pid_t>(address);
        return true;
      }
      // The label may have blanks: the numbers are the last two words.
      REQUIRE(std::sscanf(line, "%63[^0-9]%lu %lu", label, &address, &function) == 3);
      reported.push_back({label, address, function});
    }
    return false;
  }
  void go_on() { REQUIRE(write(input_, "\n", 1) == 1); }
  int end() {
    int status = -1;
    if (pid_ > 0) waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }

private:
  pid_t pid_;
  int input_;
  std::FILE* output_;
};

/// The log of a program's blocks, checked at each stop.
class Checked {
public:
  Checked() : log(std::move(*AllocationLog::create(8))) {}

  /// Runs a scenario to its end. All blocks must be found where they were allocated.
  void run(const char* path, const char* scenario) {
    Program program(&log, path, scenario);
    std::vector<Reported> reported;
    pid_t pid = 0;
    while (program.next(reported, pid)) {
      log.poll();
      ++stops;
      for (const Reported& each : reported)
        check(pid, each);
      at_stop[stops] = log.images();
      program.go_on();
    }
    CHECK(program.end() == 0);
    log.poll();
  }

  /// The sum of the sites whose innermost call is in the function that allocated this block.
  Site sum_of(const char* label) const {
    Site sum{};
    for (const Site& site : log.sites(1)) {
      if (site.chain.empty() || site.chain[0] - last.at(label).function >= function_bytes) continue;
      sum.chain = site.chain;
      sum.allocations += site.allocations;
      sum.allocated_bytes += site.allocated_bytes;
      sum.live_bytes += site.live_bytes;
      sum.peak_live_bytes += site.peak_live_bytes;
    }
    return sum;
  }

  AllocationLog log;
  int stops = 0;
  std::map<int, std::vector<ProcessImage>> at_stop;
  std::map<std::string, Reported> last;

private:
  std::optional<SiteReference> find(pid_t pid, std::uint64_t address) const {
    if (const auto block = log.find(pid, address)) return block;
    const auto mapped = log.find_mapping(pid, address);
    return mapped ? std::optional(mapped->site) : std::nullopt;
  }
  void check(pid_t pid, const Reported& each) {
    last[each.label] = each;
    INFO(each.label, each.address);
    auto found = find(pid, each.address);
    if (each.label.starts_with("was ")) {
      CHECK(!found.has_value());
      found = log.find_freed(pid, each.address);
    }
    CHECK(found.has_value() == (each.function != 0));
    if (!found || each.function == 0) return;
    const auto site = log.site(*found);
    REQUIRE(site.has_value());
    REQUIRE(!site->chain.empty());
    CHECK(site->chain[0] - each.function < function_bytes);
  }
};

constexpr const char* in_c = NEARFAR_TEST_BLOCKS;
constexpr const char* in_cpp = NEARFAR_TEST_OBJECTS;
constexpr const char* mapping = NEARFAR_TEST_MAPPINGS;
constexpr const char* in_tiers = NEARFAR_TEST_TIERS;

} // namespace

TEST_CASE("each block is found by its call site, from its first byte to its last") {
  Checked checked;
  checked.run(in_c, "kinds");
  checked.run(in_cpp, "kinds");
  CHECK(checked.stops == 2);
  CHECK(checked.log.lost().processes == 0);
}

TEST_CASE("the callers of a call site are known") {
  Checked checked;
  checked.run(in_c, "counted");
  CHECK(checked.sum_of("small ").chain.size() >= 3); // by_malloc(), main(), libc
}

TEST_CASE("a call that hides its callers has a site for each class of sizes") {
  Checked checked;
  checked.run(in_c, "hidden");
  std::vector<std::uint64_t> classes;
  for (const Site& site : checked.log.sites(1))
    if (!site.chain.empty() &&
        site.chain[0] - checked.last.at("hidden ").function < function_bytes) {
      CHECK(site.chain.size() == 1);
      classes.push_back(site.least_bytes);
    }
  std::ranges::sort(classes);
  CHECK(classes == std::vector<std::uint64_t>{32, 4096, 4352, 4864, 1 << 20});
}

TEST_CASE("an address belongs to the block that has it now") {
  Checked checked;
  checked.run(in_c, "reused");
  CHECK(checked.stops == 2);
}

TEST_CASE("large blocks that were freed or moved are known until others have their memory") {
  Checked checked;
  checked.run(in_c, "freed");
  CHECK(checked.stops == 2);
}

TEST_CASE("blocks of all sizes are found after any order of calls") {
  Checked checked;
  checked.run(in_c, "any order");
  CHECK(checked.stops == 4);
}

TEST_CASE("failed allocations leave the log as it was") {
  Checked checked;
  checked.run(in_c, "failures");
  CHECK(checked.stops == 1);
}

TEST_CASE("blocks of threads are found") {
  Checked checked;
  checked.run(in_cpp, "threads");
  CHECK(checked.stops == 1);
}

TEST_CASE("a forked child has its parent's blocks and its own") {
  Checked checked;
  checked.run(in_c, "forked");
  REQUIRE(checked.at_stop[1].size() == 2);
  CHECK(checked.at_stop[1][1].parent == checked.at_stop[1][0].number);
  CHECK(!checked.at_stop[1][1].has_ended);
  CHECK(checked.at_stop[2][1].has_ended);
}

TEST_CASE("blocks of libhmalloc are found by its hooks") {
  Checked checked;
  checked.run(in_tiers, "kinds");
  checked.run(in_tiers, "forked");
  CHECK(checked.stops == 3);
}

TEST_CASE("freed blocks of libhmalloc are taken out, also those of a heap that is destroyed") {
  Checked checked;
  checked.run(in_tiers, "freed");
  const auto of_heap = checked.sum_of("live ");
  CHECK(of_heap.allocated_bytes >= 100 * (100 << 10) + (3 << 20));
  CHECK(of_heap.peak_live_bytes >= 100 * (100 << 10) + (3 << 20));
  CHECK(of_heap.live_bytes == 0);
}

TEST_CASE("each mapping is found by its call site, as far as it is still mapped") {
  Checked checked;
  checked.run(mapping, "kinds");
  checked.run(mapping, "moved");
  CHECK(checked.stops == 3);
}

TEST_CASE("a forked child has its parent's mappings and its own") {
  Checked checked;
  checked.run(mapping, "forked");
  CHECK(checked.stops == 3);
}

TEST_CASE("mappings are counted in whole pages") {
  Checked checked;
  checked.run(mapping, "counted");
  const Site site = checked.sum_of("kept ");
  CHECK(site.allocations == 11);
  CHECK(site.allocated_bytes == 10.0 * ((1 << 20) + 4096) + (3 << 20));
  CHECK(site.live_bytes == 3 << 20);
  CHECK(site.peak_live_bytes == (1 << 20) + 4096 + (3 << 20)); // of two lines
}

TEST_CASE("a program that is executed has a log of its own") {
  Checked checked;
  checked.run(in_c, "executed");
  REQUIRE(checked.at_stop[2].size() == 2);
  CHECK(checked.at_stop[2][0].pid == checked.at_stop[2][1].pid);
  CHECK(checked.at_stop[2][0].has_ended);
  CHECK(!checked.at_stop[2][1].parent.has_value());
}

TEST_CASE("the log keeps no descriptor open, and children join without") {
  Checked checked;
  checked.run(in_c, "closed");
  CHECK(checked.stops == 2);
}

TEST_CASE("a program under limits runs on without log, and is counted") {
  for (const char* scenario : {"address space", "descriptors"}) {
    INFO(std::string(scenario));
    Checked checked;
    checked.run(in_c, scenario);
    CHECK(checked.stops == 1);
  }
  Checked checked;
  checked.run(in_c, "address space");
  CHECK(checked.log.lost().processes == 1);
}

TEST_CASE("a limit of the file size does not concern the log") {
  Checked checked;
  checked.run(in_c, "file size");
  CHECK(checked.log.lost().processes == 0);
}

TEST_CASE("a program may lock all its memory") {
  Checked checked;
  checked.run(in_cpp, "locked");
  CHECK(checked.stops == 1);
}

TEST_CASE("a process that finds no slot runs without log, and is counted") {
  auto log = std::move(*AllocationLog::create(1));
  std::vector<Reported> reported;
  pid_t first = 0;
  pid_t second = 0;
  Program with(&log, in_c, "kinds");
  REQUIRE(with.next(reported, first));
  Program without(&log, in_c, "kinds");
  REQUIRE(without.next(reported, second));
  log.poll();
  CHECK(log.lost().processes == 1);
  CHECK(!log.find(second, reported[0].address).has_value());
  CHECK(log.images().size() == 1);
}

TEST_CASE("threads and children are sampled by signals, next to the program's own handler") {
  AllocationLog log = std::move(*AllocationLog::create(8, 1'000'000));
  Program program(&log, NEARFAR_TEST_CLOCK, "clock");
  std::vector<Reported> reported;
  pid_t pid = 0;
  REQUIRE(program.next(reported, pid));
  log.poll();
  std::map<std::string, std::uint64_t> sampled_ns;
  std::map<std::string, std::uint32_t> thread;
  log.take_clock_samples([&](const ProcessImage& image, const ClockSample& sample) {
    CHECK((image.pid == pid) == !image.parent.has_value());
    for (const Reported& each : reported)
      if (sample.instruction - each.function < function_bytes) {
        sampled_ns[each.label] += sample.period_ns;
        thread[each.label] = sample.thread;
        const std::uint64_t stack_pointer = sample.registers[4];
        CHECK(stack_pointer % 8 == 0);
        CHECK(stack_pointer > each.function);
      }
  });
  for (const char* label : {"main ", "thread ", "child "}) {
    INFO(label);
    CHECK(sampled_ns[label] > 0); // a busy machine's ticks find the program less often
  }
  CHECK(thread["main "] == static_cast<std::uint32_t>(pid));
  CHECK(thread["thread "] != thread["main "]);
  CHECK(thread["child "] != thread["main "]);
  CHECK(log.lost().clock_samples == 0);
  std::uint64_t again = 0;
  log.take_clock_samples([&](const ProcessImage&, const ClockSample&) { ++again; });
  CHECK(again < 10);
  program.go_on();
  CHECK(WTERMSIG(program.end()) == SIGPROF); // what the program asked for
}

TEST_CASE("counters are exact for large blocks and unbiased for small ones") {
  Checked checked;
  checked.run(in_c, "counted");
  const Site small = checked.sum_of("small ");
  const Site large = checked.sum_of("large ");
  // 20 MB in samples of 64 KiB: a standard deviation of 6 %; 10 MB: 8 %.
  CHECK(small.allocations == doctest::Approx(20'000).epsilon(0.4));
  CHECK(small.allocated_bytes == doctest::Approx(20e6).epsilon(0.4));
  CHECK(small.live_bytes == doctest::Approx(10e6).epsilon(0.5));
  CHECK(small.peak_live_bytes == doctest::Approx(20e6).epsilon(0.4));
  CHECK(large.allocations == 11);
  CHECK(large.allocated_bytes == 11 << 20);
  CHECK(large.live_bytes == 1 << 20);
  CHECK(large.peak_live_bytes == 2 << 20); // of two lines
}

TEST_CASE("a block that is resized keeps its site, and its growth is counted") {
  Checked checked;
  checked.run(in_c, "resized");
  const Site small = checked.sum_of("small ");
  const Site large = checked.sum_of("large ");
  CHECK(small.allocations == doctest::Approx(20'000).epsilon(0.4));
  CHECK(small.allocated_bytes == doctest::Approx(20e6).epsilon(0.4));
  CHECK(large.allocations == 1);
  CHECK(large.allocated_bytes == 16 << 20);
  CHECK(large.live_bytes == 100 << 10);
}

TEST_CASE("a released image is forgotten after the images that were forked from it") {
  Checked checked;
  checked.run(in_c, "forked");
  const auto site = checked.log.sites(1);
  REQUIRE(!site.empty());
  checked.log.release(1);
  CHECK(checked.log.images().size() == 1);
  CHECK(checked.log.site({1, site[0].number}).has_value());
  checked.log.release(2);
  CHECK(!checked.log.site({1, site[0].number}).has_value());
  CHECK(checked.log.images().empty());
}

TEST_CASE("a block costs at most 15 ns" * nearfar::test::needs_idle_machine) {
  constexpr int runs = 9;
  AllocationLog log = std::move(*AllocationLog::create(2 * runs));
  std::vector<double> more_ns;
  for (int run = 0; run < runs; ++run) {
    double ns[2];
    for (const bool logged : {false, true}) {
      Program program(logged ? &log : nullptr, in_c, "timed");
      std::vector<Reported> reported;
      pid_t pid = 0;
      REQUIRE(program.next(reported, pid));
      ns[logged ? 1 : 0] = static_cast<double>(reported.at(0).address) / 1e3;
      program.go_on();
      program.end();
    }
    more_ns.push_back(ns[1] - ns[0]);
  }
  std::ranges::sort(more_ns);
  MESSAGE("median of ", runs, " runs: ", more_ns[runs / 2], " ns");
  CHECK(more_ns[runs / 2] <= 15);
}
