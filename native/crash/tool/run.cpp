// Explores the images that the log of a program leaves; a checker of the user's, or the program
// itself, looks at each.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string>

#include "crash/explorer.hpp"
#include "crash/tool/checkers.hpp"
#include "crash/tool/commands.hpp"
#include "crash/tool/hosts.hpp"
#include "crash/tool/output.hpp"
#include "crash/tool/recorded.hpp"
#include "crash/tool/reopening.hpp"
#include "crash/tool/shared_image.hpp"
#include "crash/turns.hpp"
#include "os/file.hpp"
#include "storelog/log_file.hpp"

namespace nearfar::crash {

namespace {

/// The arguments NAME0=, NAME1=, ...
std::vector<char*> words_of(const Arguments& given, const std::string& name) {
  std::vector<char*> words;
  for (int i = 0;; ++i) {
    const char* word = given.text(name + std::to_string(i), nullptr);
    if (word == nullptr) return words;
    words.push_back(const_cast<char*>(word));
  }
}

/// The pool as the program left it.
std::vector<std::byte> last_image(const storelog::Log& log) {
  std::vector<std::byte> image = log.image;
  for (const storelog::Event& event : log.events)
    if (stores(event))
      std::memcpy(image.data() + event.address, log.data.data() + event.data, event.bytes);
  return image;
}

/// Has the program show what it does with undamaged pools. Returns warnings.
std::vector<std::string> expect(Reopening& check, const storelog::Log& log, std::uint64_t unseen,
                                Arena& arena) {
  std::vector<std::string> warnings;
  const auto on = [&](const std::vector<std::byte>& pool, const std::string& when) {
    arena.copy_all(pool);
    for (std::string& warning : check.expect({arena.memory(), arena.bytes()}, when))
      warnings.push_back(std::move(warning));
    arena.restore(pool);
  };
  const std::string lacks =
      " as recorded, without " + at_least_words(unseen) + " that changed unseen";
  on(last_image(log), "that it left" + (unseen > 0 ? lacks : ""));
  on(log.image, "that it found");
  for (std::string& warning : check.require_success())
    warnings.push_back(std::move(warning));
  return warnings;
}

void print_method(const Reopening::Method& method, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings)
    std::printf("warning\t%s\n", warning.c_str());
  std::printf("reopening\t%d\t%d", method.inspected, method.started);
  for (const int number : method.expected)
    std::printf("\t%d", number);
  std::printf("\n");
}

/// No image can be checked. What the program does with its pool is not a matter of arguments.
Error nothing_checks(const std::vector<std::string>& warnings, bool input_is_lost, bool is_slow) {
  if (warnings.empty())
    return Error::make(Errc::bad_input,
                       "nothing can check the images: no argument of the program names its pool")
        .try_next("name the pool in an argument of the program, or give a --checker");
  Error error =
      Error::make(Errc::os_error, "nothing can check the images: %s", warnings.back().c_str());
  if (input_is_lost)
    return error.try_next(
        "give its standard input as a file (< FILE), so that each start reads it, "
        "or give a --checker");
  if (is_slow)
    return error.try_next("give a larger --time if the program only needs more, or a --checker");
  return error.try_next(
      "have the program open that pool in its place and end with 0, or give a --checker");
}

/// The program itself, of the arguments program0=, program1=, ..., and what is known of it.
Result<std::unique_ptr<Checked>> reopening_of(const Arguments& given, const storelog::Log& log,
                                              std::uint64_t unseen, const os::File& image,
                                              Arena& arena, os::File output) {
  Reopening::Program program{words_of(given, "program"), given.text("input", "/dev/null"),
                             given.text("image")};
  Reopening::Method method;
  method.inspected = given.number("inspected", 1) != 0;
  method.started = !program.arguments.empty() && given.number("started", 1) != 0;
  for (const char* number : words_of(given, "expected"))
    method.expected.push_back(std::atoi(number));
  program.arguments.push_back(nullptr);
  auto check = std::make_unique<Reopening>(std::move(program), image, std::move(output),
                                           given.number("limit_ms", 10'000), std::move(method));
  std::vector<std::string> warnings;
  if (!log.events.empty())
    warnings = expect(*check, log, unseen, arena); // else one image is replayed
  if (!check->method().inspected && !check->method().started)
    return nothing_checks(warnings, given.number("input_is_lost", 0) != 0, check->is_slow());
  print_method(check->method(), warnings);
  return std::unique_ptr<Checked>(std::move(check));
}

/// A function, or the program of the arguments checker0=, checker1=, ... with the image's path; the
/// program under test if none is given.
Result<std::unique_ptr<Checked>> checker_of(const Arguments& given, const storelog::Log& log,
                                            std::uint64_t unseen, const os::File& file,
                                            Arena& arena, os::File output) {
  const char* image = given.text("image");
  const std::uint64_t limit_ms = given.number("limit_ms", 10'000);
  const char* function = given.text("checker_function");
  if (function[0] != '\0')
    return function_checker(given.text("checker_library"), function, image, std::move(output),
                            limit_ms);
  std::vector<char*> arguments = words_of(given, "checker");
  if (arguments.empty()) return reopening_of(given, log, unseen, file, arena, std::move(output));
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

/// Lists the operations that threads end which the program created.
void list_operations(Trace& trace) {
  trace.operations_after.assign(1, 0);
  for (const storelog::Event& event : trace.log.events) {
    if (event.kind != storelog::EventKind::end) continue;
    if (event.thread != 0) trace.operations.push_back(event.address);
    trace.operations_after.push_back(trace.operations.size());
  }
}

Options options_of(const Arguments& given) {
  Options options;
  options.read_all = true;
  options.loss = loss_of(given);
  options.budget = given.number("budget", 0);
  options.violations = given.number("violations", options.violations);
  options.progress_interval = 16;
  options.limit_ms = 3'600'000; // the checker has its own limit
  return options;
}

} // namespace

int run(const Arguments& given) {
  const char* image = given.text("image");
  const bool two_hosts = given.number("hosts", 1) == 2;
  const bool replays = std::strlen(given.text("log")) == 0;
  const bool interleaved = given.number("interleaved", 0) != 0;
  Trace trace;
  storelog::ReadLog read; // owns the names that sites point to
  if (replays) {
    if (Status s = read_kept(given.text("kept"), trace.log); !s) return print_error(s.error());
    for (const char* number : words_of(given, "operation"))
      trace.operations.push_back(std::strtoull(number, nullptr, 10));
  } else {
    Result<storelog::ReadLog> found = read_recorded(given.text("log"));
    if (!found) return print_error(found.error());
    read = std::move(*found);
    trace.log = std::move(read.log);
    if (interleaved) list_operations(trace);
    if (!two_hosts) run_on_one_host(trace.log);
    if (Status s = two_hosts ? expect_two_hosts(trace.log) : Status(Done{}); !s)
      return print_error(s.error());
  }
  Result<SharedImage> shared = share(image, trace.log.pool_bytes);
  if (!shared) return print_error(shared.error());
  Result<os::File> output = os::create_new(given.text("output"));
  if (!output) return print_error(output.error());
  Options options = options_of(given);
  const bool changes = std::strlen(given.text("checker_function")) == 0; // a function has a copy
  options.crash_recovery = std::strlen(given.text("checker0")) != 0;
  if (interleaved && !replays)
    options.from = first_of_others(trace.log, static_cast<std::uint16_t>(given.number("held", 0)));
  Arena arena(shared->range.data(), trace.log.pool_bytes, changes ? shared->file.fd() : -1);
  Result<std::unique_ptr<Checked>> checker =
      checker_of(given, trace.log, read.unseen_bytes, shared->file, arena, std::move(*output));
  if (!checker) return print_error(checker.error());
  if (two_hosts) {
    const HostExploration found = explore_hosts(**checker, arena, trace, options, print_progress);
    for (const CrashCount& count : found.counts)
      print_count(count);
    return print_exploration(found.all, given.text("images"));
  }
  Explorer explorer(**checker, arena, trace, options);
  if (!replays) {
    const Exploration found = explorer.explore(print_progress);
    if (const Checked::Doubt doubt = (*checker)->doubt(); doubt.images > 0)
      std::printf("doubt\t%" PRIu64 "\t%s\n", doubt.images, doubt.said.c_str());
    return print_exploration(found, given.text("images"));
  }
  print_finding(explorer.replay(trace.log.image, given.number("acknowledged", 0),
                                given.number("in_flight", 0) != 0,
                                given.number("finished", 0) != 0),
                nullptr);
  return 0;
}

} // namespace nearfar::crash
