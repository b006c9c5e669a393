// Explores the images that the log of a program leaves; a checker of the user's looks at each.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "crash/explorer.hpp"
#include "crash/tool/checkers.hpp"
#include "crash/tool/commands.hpp"
#include "crash/tool/output.hpp"
#include "crash/tool/recorded.hpp"
#include "crash/tool/shared_image.hpp"
#include "os/file.hpp"
#include "storelog/log_file.hpp"

namespace nearfar::crash {

namespace {

/// A function, or the program of the arguments checker0=, checker1=, ... with the image's path.
Result<std::unique_ptr<Checked>> checker_of(const Arguments& given, const char* image,
                                            os::File output) {
  const std::uint64_t limit_ms = given.number("limit_ms", 10'000);
  const char* function = given.text("checker_function");
  if (function[0] != '\0')
    return function_checker(given.text("checker_library"), function, image, std::move(output),
                            limit_ms);
  std::vector<char*> arguments;
  for (int i = 0;; ++i) {
    const char* argument = given.text("checker" + std::to_string(i), nullptr);
    if (argument == nullptr) break;
    arguments.push_back(const_cast<char*>(argument));
  }
  arguments.push_back(const_cast<char*>(image));
  arguments.push_back(nullptr);
  return program_checker(std::move(arguments), std::move(output), limit_ms,
                         {given.text("recorder"), given.text("recovery"), image});
}

/// The image of a finding that is replayed.
Status read_kept(const char* file, storelog::Log& log) {
  Result<std::vector<std::byte>> kept = read_image(file);
  if (!kept) return kept.error();
  log.image = std::move(*kept);
  log.pool_bytes = log.image.size();
  if (log.pool_bytes == 0) return nothing_mapped();
  return Done{};
}

Options options_of(const Arguments& given) {
  Options options;
  options.read_all = true;
  options.platform = platform_of(given);
  options.budget = given.number("budget", 0);
  options.violations = given.number("violations", options.violations);
  options.progress_interval = 16;
  options.limit_ms = 3'600'000; // the checker has its own limit
  return options;
}

} // namespace

int run(const Arguments& given) {
  const char* image = given.text("image");
  const bool replays = std::strlen(given.text("log")) == 0;
  Trace trace;
  storelog::ReadLog read; // owns the names that sites point to
  if (replays) {
    if (Status s = read_kept(given.text("kept"), trace.log); !s) return print_error(s.error());
  } else {
    Result<storelog::ReadLog> found = read_recorded(given.text("log"));
    if (!found) return print_error(found.error());
    read = std::move(*found);
    trace.log = std::move(read.log);
  }
  Result<SharedImage> shared = share(image, trace.log.pool_bytes);
  if (!shared) return print_error(shared.error());
  Result<os::File> output = os::create_new(given.text("output"));
  if (!output) return print_error(output.error());
  Options options = options_of(given);
  const bool changes = std::strlen(given.text("checker_function")) == 0; // a function has a copy
  options.crash_recovery = changes;
  Arena arena(shared->range.data(), trace.log.pool_bytes, changes);
  Result<std::unique_ptr<Checked>> checker = checker_of(given, image, std::move(*output));
  if (!checker) return print_error(checker.error());
  Explorer explorer(**checker, arena, trace, options);
  if (!replays) return print_exploration(explorer.explore(print_progress), given.text("images"));
  print_finding(explorer.replay(trace.log.image, given.number("acknowledged", 0),
                                given.number("in_flight", 0) != 0,
                                given.number("finished", 0) != 0),
                nullptr);
  return 0;
}

} // namespace nearfar::crash
