// What checkers of images have in common: a time limit, and how they ended in words.
//
// Thread safety  one thread.
#pragma once

#include <string>

#include "base/result.hpp"
#include "crash/subject.hpp"
#include "os/child.hpp"

namespace nearfar::crash {

class Checker : public Checked {
public:
  const char* contents(Contents&) override { return nullptr; }
  std::uint64_t leaked_bytes() override { return 0; }
  void close() override {}
  Failure failure() const override { return failure_; }

protected:
  /// `name` is what checks, for sentences: "the checker".
  Checker(const char* name, std::uint64_t limit_ms) : name_(name), limit_ms_(limit_ms) {}

  /// Longest time for the next check. After a timeout, later checks get a shorter limit: a multiple of
  /// the longest check that ended.
  std::uint64_t limit_ms() const;
  void begin();
  /// A check has ended in time.
  void ended();
  /// A check did not end, or a signal or exit() ended it; it printed `said` last.
  const char* lost(const os::Ended& ended, const std::string& said);
  /// What nearfar/crash_checker.h says of a code. If `said` is empty, the message is what the
  /// checker `did`, and the code.
  const char* judge(int code, std::string said, const char* did);
  const char* fail(Failure failure, std::string why);

  /// Ends this process with an error if a check has given the image another size: its contents, which
  /// the next images are made of, are lost.
  void require_size(const char* image, std::size_t bytes) const;
  /// Ends this process with an error: no check can be made.
  [[noreturn]] void give_up(const Error& error) const;

private:
  static constexpr std::uint64_t min_ms = 100;
  static constexpr std::uint64_t patience = 20;

  const char* name_;
  std::uint64_t limit_ms_;
  std::uint64_t longest_ms_ = 0; ///< that a check took which ended
  std::uint64_t started_ns_ = 0;
  bool hung_ = false;
  Failure failure_ = Failure::none;
  std::string why_;
};

} // namespace nearfar::crash
