// The check of images where the user gives no checker: the pool is inspected, and the program
// itself is started again on the image.
//
// Findings       damage that `nearfar pool check` reports, a signal (of an assertion, too), a hang,
//                and an exit code other than 0.
// Expected       an exit code with the pool as the recorded run found it and as it left it: no power
//                was cut there. A program that dies or hangs there checks no image.
// Thread safety  one thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "crash/tool/checker.hpp"
#include "os/file.hpp"

namespace nearfar::crash {

class Reopening final : public Checker {
public:
  struct Program {
    std::vector<char*> arguments; ///< end with a null pointer and outlive the check
    const char* input;            ///< file that is its standard input
    const char* path;             ///< of the image, which is one of the arguments
  };
  /// What is done with each image, and how the program may end.
  struct Method {
    bool inspected = true;     ///< the pool is one of libpmemobj
    bool started = true;       ///< the program is started
    std::vector<int> expected; ///< exit codes
  };
  /// `image` is the file that the program opens by its path.
  Reopening(Program program, const os::File& image, os::File output, std::uint64_t limit_ms,
            Method method);

  /// Expects from now on what happens on the image as it is; `when` names it in warnings. Returns
  /// these.
  std::vector<std::string> expect(std::span<const std::byte> pool, const std::string& when);
  /// Called once, after expect() for all pools that are known to be good. A program that failed on all
  /// of them is not started on images, because its failures would prove nothing. Returns warnings.
  std::vector<std::string> require_success();
  const Method& method() const { return method_; }
  bool is_slow() const { return is_slow_; } ///< it did not end within the limit on a good pool

  const char* open(std::byte* pool, std::size_t bytes, const Moment& moment) override;
  Doubt doubt() const override { return doubt_; }

private:
  const char* inspect(std::span<const std::byte> pool);
  Result<os::Ended> start();

  Program program_;
  const os::File& image_;
  os::File output_;
  Method method_;
  std::vector<std::string> said_; ///< with each of the expected codes, without numbers
  Doubt doubt_;
  bool succeeds_ = false; ///< on one of those pools
  bool is_slow_ = false;
};

} // namespace nearfar::crash
