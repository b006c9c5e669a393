#include "crash/tool/checker.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/stat.h>

#include "crash/tool/output.hpp"
#include "nearfar/crash_checker.h"
#include "os/clock.hpp"

namespace nearfar::crash {

std::uint64_t Checker::limit_ms() const {
  if (!hung_) return limit_ms_;
  return std::min(limit_ms_, std::max<std::uint64_t>(min_ms, patience * longest_ms_));
}

void Checker::begin() { started_ns_ = os::now_ns(); }

void Checker::ended() {
  longest_ms_ = std::max(longest_ms_, (os::now_ns() - started_ns_) / 1'000'000 + 1);
}

const char* Checker::lost(const os::Ended& ended, const std::string& said) {
  char text[96];
  if (ended.hung) {
    std::snprintf(text, sizeof text, "%s did not end within %" PRIu64 " ms", name_, limit_ms());
    hung_ = true;
    return fail(Failure::hung, text);
  }
  if (ended.signal == 0)
    return fail(Failure::crashed, std::string(name_) + " ended its process, by exit()");
  std::snprintf(text, sizeof text, "%s was killed by signal %d (%s)", name_, ended.signal,
                strsignal(ended.signal));
  return fail(Failure::crashed, said.empty() ? text : text + (": " + said));
}

const char* Checker::judge(int code, std::string said, const char* did) {
  ended();
  if (code == NEARFAR_CRASH_GOOD) return nullptr;
  if (said.empty()) said = did + std::to_string(code);
  return fail(code == NEARFAR_CRASH_REFUSED ? Failure::refused : Failure::broken, said);
}

void Checker::require_size(const char* image, std::size_t bytes) const {
  struct stat file;
  if (stat(image, &file) == 0 && static_cast<std::size_t>(file.st_size) != bytes)
    give_up(Error::make(Errc::bad_input, "%s changed the size of its image from %zu to %jd bytes",
                        name_, bytes, static_cast<std::intmax_t>(file.st_size))
                .try_next("let it keep the size, or work on a copy"));
}

void Checker::give_up(const Error& error) const { std::exit(print_error(error)); }

const char* Checker::fail(Failure failure, std::string why) {
  failure_ = failure;
  why_ = std::move(why);
  for (char& c : why_)
    if (c == '\t' || c == '\n') c = ' ';
  return why_.c_str();
}

} // namespace nearfar::crash
