// Checkers of the user's: a program, or a C function of a shared library (nearfar/crash_checker.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "crash/subject.hpp"
#include "os/file.hpp"

namespace nearfar::crash {

/// Where a program is recorded while it recovers an image: the library that is loaded into it, the
/// log that this writes, and the path of the image according to the log.
struct RecoveryLog {
  std::string library;
  std::string path;
  std::string image;
};

/// A program, called with the path of an image after its arguments (which end with a null pointer
/// and outlive it). It exits with 0 if the image is good, with 2 if it does not open, with anything
/// else if it is not good; its last line in `output` says why.
std::unique_ptr<Checked> program_checker(std::vector<char*> arguments, os::File output,
                                         std::uint64_t limit_ms, RecoveryLog recovery);

/// A function of a shared library, on the image at `path`, which is the memory that it is opened
/// with. What it prints goes to `output`. Errors: not_found (no such library or function).
Result<std::unique_ptr<Checked>> function_checker(const char* library, const char* function,
                                                  std::string path, os::File output,
                                                  std::uint64_t limit_ms);

} // namespace nearfar::crash
