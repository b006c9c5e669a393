// A device as a text file: what a profile says, resolved to the figures of make_device(), for
// programs that read no profiles (docs/formats/device.md). Untrusted.
//
// Thread safety  any thread.
#pragma once

#include "sim/device.hpp"

namespace nearfar::sim {

/// Reads the text of a device file. `file`: its name in messages. Errors: bad_input with the line.
Result<Device> parse_device(std::string_view text, const char* file);

/// Reads a device file. Errors: those of os::open_stream and parse_device.
Result<Device> read_device(const char* path);

} // namespace nearfar::sim
