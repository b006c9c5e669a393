// Reads device files: text files with the figures of make_device() (docs/formats/device.md), for
// programs that do not read profiles. Untrusted input.
//
// Thread safety  any thread.
#pragma once

#include "sim/device.hpp"

namespace nearfar::sim {

/// Parses the text of a device file. `file`: name in messages. Errors: bad_input with the line;
/// those of make_device().
Result<Device> parse_device(std::string_view text, const char* file);

/// Reads and parses a device file. Errors: os_error; those of os::open_stream and parse_device.
Result<Device> read_device(const char* path);

} // namespace nearfar::sim
