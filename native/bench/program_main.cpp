// One of the thesis' programs in a process of its own:
//   nearfar-program NAME N STEPS SEED ALLOCATOR                  timed
//   nearfar-program NAME N STEPS SEED record FILE BYTES/WAYS...  its trace, after these caches
//
// Prints a line "KEY VALUE" for each figure, times in nanoseconds; or three lines: "error CODE",
// the message, the next step. An interface between this program and its package.
#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string_view>

#include "bench/program_output.hpp"
#include "bench/programs.hpp"

using namespace nearfar;

namespace {

bool read_work(char** arguments, bench::ProgramWork& work) {
  const auto* found = std::find(std::begin(bench::program_names), std::end(bench::program_names),
                                std::string_view(arguments[1]));
  work.program = static_cast<bench::Program>(found - std::begin(bench::program_names));
  return found != std::end(bench::program_names) && bench::read(arguments[2], work.n) &&
         bench::read(arguments[3], work.steps) && bench::read(arguments[4], work.seed);
}

bool read_levels(int count, char** texts, std::vector<cache::Geometry>& levels) {
  for (int i = 0; i < count; ++i) {
    const std::string_view text = texts[i];
    const std::size_t slash = std::min(text.find('/'), text.size());
    cache::Geometry level;
    if (slash == text.size() || !bench::read(text.substr(0, slash), level.size_bytes) ||
        !bench::read(text.substr(slash + 1), level.ways))
      return false;
    levels.push_back(level);
  }
  return true;
}

int record(const bench::ProgramWork& work, int count, char** arguments) {
  std::vector<cache::Geometry> levels;
  if (count < 8 || !read_levels(count - 7, arguments + 7, levels))
    return bench::fail(Error::make(Errc::bad_input, "caches are written BYTES/WAYS"));
  Result<std::uint64_t> checksum = bench::record_program(work, levels, arguments[6]);
  if (!checksum) return bench::fail(checksum.error());
  std::printf("checksum %" PRIu64 "\n", *checksum);
  return 0;
}

} // namespace

int main(int count, char** arguments) {
  bench::ProgramWork work;
  if (count < 6 || !read_work(arguments, work))
    return bench::fail(Error::make(Errc::bad_input, "this program is a part of nearfar")
                           .try_next("nearfar bench sort --help"));
  if (std::strcmp(arguments[5], "record") == 0) return record(work, count, arguments);
  Result<bench::Allocator> allocator = bench::find_allocator(arguments[5]);
  if (!allocator) return bench::fail(allocator.error());
  Result<bench::ProgramRun> run = bench::run_program(work, *allocator);
  if (!run) return bench::fail(run.error());
  std::printf("library %s\nchecksum %" PRIu64 "\narray_bytes %zu\n", bench::library_of(*allocator),
              run->checksum, bench::program_bytes(work));
  bench::print_usage(run->usage);
  return 0;
}
