// Helpers of native tests: a folder for each test, CPUs that may be used, timing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <sched.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "os/clock.hpp"

namespace nearfar::test {

/// An empty folder, removed with all that is in it at the end of the test.
class Folder {
public:
  Folder() : Folder(std::filesystem::temp_directory_path()) {}
  explicit Folder(const std::filesystem::path& parent) {
    std::string name = (parent / "nearfar-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  /// In memory where there is a tmpfs: for tests that sync often.
  static Folder quick() {
    const bool tmpfs = std::filesystem::is_directory("/dev/shm");
    return Folder(tmpfs ? "/dev/shm" : std::filesystem::temp_directory_path());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  std::string path() const { return path_.string(); }
  std::string path(const char* name) const { return (path_ / name).string(); }
  bool empty() const { return std::filesystem::is_empty(path_); }

private:
  std::filesystem::path path_;
};

/// The processors this process may use.
inline std::vector<int> usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
  return cpus;
}

/// The first of them.
inline int usable_cpu() { return usable_cpus().front(); }

/// Whether ThreadSanitizer is in the program; if so, prints why a check is skipped.
inline bool skipped_under_tsan([[maybe_unused]] const char* reason) {
#ifdef __SANITIZE_THREAD__
  MESSAGE("skipped under ThreadSanitizer: ", std::string(reason));
  return true;
#else
  return false;
#endif
}

/// Runs `work` in a child, and returns its wait status: 0 if `work` returns true. A child that
/// hangs is killed.
template <class Work>
int status_in_child(const Work& work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(work() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

inline constexpr int missing_cpu = CPU_SETSIZE - 1; ///< no machine under test has so many

/// A test case that judges measured times: `TEST_CASE("..." * test::needs_idle_machine)`. The tests
/// skip it, because other programs decide on its result; benchmarks/native_timing.sh runs it.
struct NeedsIdleMachine {
  void fill(doctest::detail::TestCase& test) const {
    test.m_skip = true;
    test.m_test_suite = "idle machine";
  }
};
inline constexpr NeedsIdleMachine needs_idle_machine;

/// Shortest of several runs in nanoseconds: what the work takes when nothing else interferes.
template <class Work>
std::uint64_t shortest_ns(const Work& work, int runs = 7) {
  std::uint64_t shortest = UINT64_MAX;
  for (int run = 0; run < runs; ++run) {
    const std::uint64_t start = os::now_ns();
    work();
    shortest = std::min(shortest, os::now_ns() - start);
  }
  return shortest;
}

} // namespace nearfar::test
