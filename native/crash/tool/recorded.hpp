// The log of a recorded program, as the tool's commands read it.
#pragma once

#include "storelog/log_file.hpp"

namespace nearfar::crash {

/// The program mapped no pool.
Error nothing_mapped();

/// Reads a log and prints a `log` line on it. Errors: those of storelog::read_log; bad_input if
/// nothing was mapped or no store was seen.
Result<storelog::ReadLog> read_recorded(const char* file, bool contents = true);

} // namespace nearfar::crash
