// A child process that answers requests, one after the other: for code that may crash, hang or
// corrupt its process, and must not affect its caller.
//
// Method         it is forked from this process at the first request, and again after it was lost;
//                requests and answers go through a socket. It has the default signal handlers, and
//                ends when its parent does.
// Thread safety  one thread, of a process that has no others (fork).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <sys/types.h>

#include "base/result.hpp"
#include "os/child.hpp"
#include "os/file.hpp"

namespace nearfar::os {

class Helper {
public:
  /// `serve` is called in the child. What it prints goes to `output`, which stays open.
  using Serve = std::function<std::string(std::string_view question)>;
  Helper(Serve serve, int output) : serve_(std::move(serve)), output_(output) {}
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;
  ~Helper();

  struct Answer {
    Ended ended; ///< code 0 if there is an answer; else how the child was lost
    std::string text;
  };
  /// Asks, and waits `limit_ms` at most. Costs two switches of processes. Errors: os_error (no
  /// child can be had).
  Result<Answer> ask(std::string_view question, std::uint64_t limit_ms);

private:
  Status start();
  [[noreturn]] void run_child(int fd);
  Ended lost(bool hung);

  Serve serve_;
  int output_;
  pid_t child_ = 0;
  File socket_;
};

} // namespace nearfar::os
