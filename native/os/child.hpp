// Runs another program to its end, or to a limit.
//
// Thread safety  several threads may run programs at once.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>

#include "base/result.hpp"
#include "os/file.hpp"

namespace nearfar::os {

struct Ended {
  int code = 0;      ///< exit code, if no signal ended it
  int signal = 0;    ///< that ended it, 0 if none
  bool hung = false; ///< it took longer than the limit and was killed, with its children
};

/// Waits until a child process has ended; does not set `hung`.
Ended wait_for(pid_t child);

/// Runs `arguments` (null-terminated, the program first, found by PATH) with this process's
/// environment, input from the file `input`, output and errors into the file descriptor `output`.
/// Errors: not_found (no such program), os_error.
Result<Ended> run_program(char* const* arguments, const char* input, int output,
                          std::uint64_t limit_ms);

/// The last line that was written to a file, without its end; at most 512 bytes of it.
std::string last_line(const File& file);
/// Truncates a file to 0 bytes and sets its offset to 0.
void empty(const File& file);

} // namespace nearfar::os
