// Runs another program to its end, or to a limit.
//
// Thread safety  several threads may run programs at once.
#pragma once

#include <cstdint>

#include "base/result.hpp"

namespace nearfar::os {

struct Ended {
  int code = 0;      ///< exit code, if no signal ended it
  int signal = 0;    ///< that ended it, 0 if none
  bool hung = false; ///< it took longer than the limit and was killed, with its children
};

/// Runs `arguments` (null-terminated, the program first, found by PATH) with this process's
/// environment, output and errors into the file descriptor `output`. Errors: not_found (no such
/// program), os_error.
Result<Ended> run_program(char* const* arguments, int output, std::uint64_t limit_ms);

} // namespace nearfar::os
