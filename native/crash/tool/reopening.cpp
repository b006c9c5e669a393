#include "crash/tool/reopening.hpp"

#include <algorithm>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <sys/inotify.h>
#include <unistd.h>

#include "inspect/pool.hpp"

namespace nearfar::crash {

namespace {

/// Whether a file is opened by its path while this lives.
class OpenWatch {
public:
  explicit OpenWatch(const char* path) : events_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    watched_ = inotify_add_watch(events_.fd(), path, IN_OPEN) >= 0;
  }
  /// True where it cannot be known.
  bool is_opened() const {
    alignas(inotify_event) char event[sizeof(inotify_event) + NAME_MAX + 1];
    return !watched_ || read(events_.fd(), event, sizeof event) > 0;
  }

private:
  os::File events_;
  bool watched_ = false;
};

std::string did_not_end_within(std::uint64_t limit_ms) {
  char text[80];
  std::snprintf(text, sizeof text, "the program did not end within the limit of %g s (--time)",
                static_cast<double>(limit_ms) / 1000);
  return text;
}

std::string not_opened(int code, const std::string& said) {
  return "the program ended with " + std::to_string(code) +
         (said.empty() ? "" : " (" + said + ")") + " and did not open it";
}

/// A line without its numbers, which may be others in each run.
std::string without_numbers(std::string line) {
  std::erase_if(line, [](char one) { return one >= '0' && one <= '9'; });
  return line;
}

int number_of(const os::Ended& ended) { return ended.signal != 0 ? -ended.signal : ended.code; }

} // namespace

Reopening::Reopening(Program program, const os::File& image, os::File output,
                     std::uint64_t limit_ms, Method method)
    : Checker("the program", limit_ms), program_(std::move(program)), image_(image),
      output_(std::move(output)), method_(std::move(method)) {
  setenv("PMEM_IS_PMEM_FORCE", "1", 1); // as in the recorded run
  setenv("NEARFAR_CRASH_IMAGE", program_.path, 1);
}

std::vector<std::string> Reopening::expect(std::span<const std::byte> pool,
                                           const std::string& when) {
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& what) {
    warnings.push_back("on the pool " + when + ", " + what);
  };
  if (method_.inspected) {
    method_.inspected = inspect::identify(inspect::MemoryView(pool)) == inspect::FileKind::object;
    if (const char* damage = method_.inspected ? inspect(pool) : nullptr; damage != nullptr) {
      method_.inspected = false;
      warn(std::string("there is damage without a crash (") + damage +
           "): images are not inspected");
    }
  }
  if (!method_.started) return warnings;
  const OpenWatch watch(program_.path);
  const std::uint64_t limit_ms = this->limit_ms();
  Result<os::Ended> ended = start();
  require_size(program_.path, pool.size());
  const bool is_there = os::is_at(image_, program_.path);
  if (!ended || ended->hung || ended->signal != 0 || !is_there || !watch.is_opened()) {
    method_.started = false;
    is_slow_ = ended && ended->hung;
    warn(std::string(!ended               ? ended.error().what
                     : is_slow_           ? did_not_end_within(limit_ms)
                     : ended->signal != 0 ? lost(*ended, os::last_line(output_))
                     : !is_there          ? "the program removes, renames or replaces it"
                                          : not_opened(ended->code, os::last_line(output_))) +
         ": it is not started on images");
  } else if (const int number = number_of(*ended); number != 0) {
    method_.expected.push_back(number);
    const std::string said = os::last_line(output_);
    said_.push_back(without_numbers(said));
    warn("the program ends with " + std::to_string(number) +
         (said.empty() ? "" : " (" + said + ")") + ": this is expected");
  } else {
    succeeds_ = true;
  }
  return warnings;
}

std::vector<std::string> Reopening::require_success() {
  if (!method_.started || succeeds_) return {};
  method_.started = false;
  return {"the program fails on each undamaged pool: it is not started on images"};
}

const char* Reopening::open(std::byte* pool, std::size_t bytes, const Moment&) {
  if (method_.inspected)
    if (const char* damage = inspect({pool, bytes}); damage != nullptr) return damage;
  if (!method_.started) return nullptr;
  Result<os::Ended> ended = start();
  if (!ended) give_up(ended.error());
  require_size(program_.path, bytes);
  const int number = ended->hung ? 0 : number_of(*ended);
  const bool expected =
      std::find(method_.expected.begin(), method_.expected.end(), number) != method_.expected.end();
  const std::string said = os::last_line(output_);
  if (!ended->hung && (number == 0 || expected)) {
    // An image that is replayed has no good pools to compare with.
    if (number != 0 && !said_.empty() &&
        std::find(said_.begin(), said_.end(), without_numbers(said)) == said_.end() &&
        ++doubt_.images == 1) {
      doubt_.said = said;
      std::replace(doubt_.said.begin(), doubt_.said.end(), '\t', ' ');
    }
    return nullptr;
  }
  if (ended->hung || ended->signal != 0) return lost(*ended, said);
  return fail(Failure::failed, "the program exited with " + std::to_string(number) +
                                   (said.empty() ? "" : ": " + said));
}

/// Returns the first damage, or null.
const char* Reopening::inspect(std::span<const std::byte> pool) {
  const inspect::PoolReport report = inspect::examine(inspect::MemoryView(pool));
  for (const inspect::Finding& finding : report.findings.kept()) {
    if (finding.severity != inspect::Severity::damage) continue;
    char where[48];
    std::snprintf(where, sizeof where, " (%s at offset %#" PRIx64 ")", finding.part,
                  finding.offset);
    return fail(Failure::damaged, finding.text + where);
  }
  return nullptr;
}

/// Runs the program once on the image.
Result<os::Ended> Reopening::start() {
  os::empty(output_);
  begin();
  Result<os::Ended> done =
      os::run_program(program_.arguments.data(), program_.input, output_.fd(), limit_ms());
  if (done && !done->hung) ended();
  return done;
}

} // namespace nearfar::crash
