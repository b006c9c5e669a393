// Explores the images that the log of a program leaves; another program checks each.
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "crash/explorer.hpp"
#include "crash/tool/commands.hpp"
#include "crash/tool/output.hpp"
#include "os/child.hpp"
#include "os/file.hpp"
#include "os/pages.hpp"
#include "storelog/log_file.hpp"

namespace nearfar::crash {

namespace {

/// A checker of the user's: called with the path of an image, which it may change. It exits with 0
/// if the image is good, with 2 if it does not open, with anything else if it is not good.
class Program final : public Checked {
public:
  Program(std::vector<char*> arguments, os::File output, std::uint64_t limit_ms)
      : arguments_(std::move(arguments)), output_(std::move(output)), limit_ms_(limit_ms) {}

  const char* open(std::byte*, std::size_t, const Moment& moment) override {
    set("NEARFAR_CRASH_ACKNOWLEDGED", moment.acknowledged);
    set("NEARFAR_CRASH_IN_FLIGHT", moment.in_flight);
    set("NEARFAR_CRASH_FINISHED", moment.finished);
    os::empty(output_);
    Result<os::Ended> ended = os::run_program(arguments_.data(), output_.fd(), limit_ms_);
    if (!ended) return tell(Failure::crashed, ended.error().what);
    char text[64];
    if (ended->hung) {
      std::snprintf(text, sizeof text, "the checker did not end within %" PRIu64 " ms", limit_ms_);
      return tell(Failure::hung, text);
    }
    if (ended->signal != 0) {
      std::snprintf(text, sizeof text, "the checker was killed by signal %d (%s)", ended->signal,
                    strsignal(ended->signal));
      return tell(Failure::crashed, text);
    }
    if (ended->code == 0) return nullptr;
    std::string said = os::last_line(output_);
    if (said.empty()) said = "the checker exited with " + std::to_string(ended->code);
    if (ended->code == 2) return tell(Failure::refused, "the image does not open: " + said);
    return tell(Failure::broken, said);
  }
  const char* contents(Contents&) override { return nullptr; }
  std::uint64_t leaked_bytes() override { return 0; }
  void close() override {}
  Failure failure() const override { return failure_; }

private:
  static void set(const char* name, std::uint64_t value) {
    setenv(name, std::to_string(value).c_str(), 1);
  }
  const char* tell(Failure failure, std::string why) {
    failure_ = failure;
    why_ = std::move(why);
    for (char& c : why_)
      if (c == '\t' || c == '\n') c = ' ';
    return why_.c_str();
  }

  std::vector<char*> arguments_;
  os::File output_;
  std::uint64_t limit_ms_;
  Failure failure_ = Failure::none;
  std::string why_;
};

/// The arguments checker0=, checker1=, ... with the image's path after them.
std::vector<char*> checker_of(const Arguments& given, const char* image) {
  std::vector<char*> arguments;
  for (int i = 0;; ++i) {
    const char* argument = given.text("checker" + std::to_string(i), nullptr);
    if (argument == nullptr) break;
    arguments.push_back(const_cast<char*>(argument));
  }
  arguments.push_back(const_cast<char*>(image));
  arguments.push_back(nullptr);
  return arguments;
}

/// A file that is the arena: what the explorer puts there, the checker opens.
struct SharedImage {
  os::File file;
  os::Range range;
};

Result<SharedImage> share(const char* path, std::size_t bytes) {
  Result<os::File> file = os::create_new(path);
  if (!file) return file.error();
  if (Status sized = os::reserve_space(*file, bytes); !sized) return sized.error();
  Result<os::Range> range = os::map_range(bytes, os::PageSize::small_4k, file->fd(), false);
  if (!range) return range.error();
  return SharedImage{std::move(*file), std::move(*range)};
}

} // namespace

int run(const Arguments& given) {
  const char* image = given.text("image");
  const bool replays = std::strlen(given.text("log")) == 0;
  Trace trace;
  storelog::ReadLog read; // owns the names that sites point to
  if (replays) {
    Result<std::vector<std::byte>> kept = read_image(given.text("kept"));
    if (!kept) return print_error(kept.error());
    trace.log.image = std::move(*kept);
    trace.log.pool_bytes = trace.log.image.size();
  } else {
    Result<storelog::ReadLog> found = storelog::read_log(given.text("log"));
    if (!found) return print_error(found.error());
    read = std::move(*found);
    trace.log = std::move(read.log);
    std::printf("log\t%zu\t%zu\t%d\t%s\t%s\n", trace.log.events.size(), trace.log.pool_bytes,
                read.complete, read.ending.c_str(), read.pool_path.c_str());
  }
  if (trace.log.pool_bytes == 0)
    return print_error(Error::make(Errc::bad_input, "the program mapped no file to be recorded")
                           .try_next("map the pool shared and writable, from a regular file"));
  Result<SharedImage> shared = share(image, trace.log.pool_bytes);
  if (!shared) return print_error(shared.error());
  Result<os::File> output = os::create_new(given.text("output"));
  if (!output) return print_error(output.error());
  Options options;
  options.read_all = true;
  options.platform = platform_of(given);
  options.budget = given.number("budget", 0);
  options.violations = given.number("violations", options.violations);
  options.told_every = 16;
  options.limit_ms = 3'600'000; // the checker has its own limit
  Arena arena(shared->range.data(), trace.log.pool_bytes);
  Program checker(checker_of(given, image), std::move(*output), given.number("limit_ms", 10'000));
  Explorer explorer(checker, arena, trace, options);
  if (!replays) return print_exploration(explorer.explore(print_progress), given.text("images"));
  print_finding(explorer.replay(trace.log.image, given.number("acknowledged", 0),
                                given.number("in_flight", 0) != 0,
                                given.number("finished", 0) != 0),
                nullptr);
  return 0;
}

} // namespace nearfar::crash
