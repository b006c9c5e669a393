// One malloc test in a process of its own:
//   nearfar-malloc TEST COUNT SEED CPU,CPU,… SETTLE_MS ALLOCATOR
//
// Prints "library FILE" and a line "KEY VALUE" for each figure, times in nanoseconds; or three
// lines: "error CODE", the message, the next step. An interface between this program and its
// package.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string_view>
#include <vector>

#include "bench/malloc.hpp"
#include "bench/program_output.hpp"

using namespace nearfar;

namespace {

using bench::fail;
using bench::read;

bool read_cpus(std::string_view text, std::vector<int>& cpus) {
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    int cpu = -1;
    if (!read(text.substr(0, comma), cpu)) return false;
    cpus.push_back(cpu);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return !cpus.empty();
}

bool read_test(std::string_view text, bench::MallocTest& test) {
  const auto* found =
      std::find(std::begin(bench::malloc_tests), std::end(bench::malloc_tests), text);
  test = static_cast<bench::MallocTest>(found - std::begin(bench::malloc_tests));
  return found != std::end(bench::malloc_tests);
}

void print(const bench::MallocRun& run) {
  std::printf("wall_ns %.0f\ncpu_ns %.0f\n", run.wall_seconds * 1e9, run.cpu_seconds * 1e9);
  std::printf("pairs %zu\npeak_bytes %zu\nsettled_bytes %zu\n", run.pairs, run.peak_bytes,
              run.settled_bytes);
  bench::print_usage(run.usage);
}

} // namespace

int main(int count, char** arguments) {
  bench::MallocWork work;
  std::vector<int> cpus;
  std::uint64_t settle_ms = 0;
  if (count != 7 || !read_test(arguments[1], work.test) || !read(arguments[2], work.count) ||
      !read(arguments[3], work.seed) || !read_cpus(arguments[4], cpus) ||
      !read(arguments[5], settle_ms))
    return fail(Error::make(Errc::bad_input, "this program is a part of nearfar")
                    .try_next("nearfar bench malloc --help"));
  work.settle_ns = settle_ms * 1'000'000;
  Result<bench::Allocator> allocator = bench::find_allocator(arguments[6]);
  if (!allocator) return fail(allocator.error());
  Result<bench::MallocRun> run = bench::run_malloc_test(*allocator, work, cpus);
  if (!run) return fail(run.error());
  std::printf("library %s\n", bench::library_of(*allocator));
  print(*run);
  return 0;
}
