// Buffered streams of the C library that close themselves.
//
// Thread safety  a stream is used by one thread at a time.
#pragma once

#include <cstdio>
#include <memory>

#include "base/result.hpp"

namespace nearfar::os {

struct CloseStream {
  void operator()(std::FILE* stream) const { std::fclose(stream); }
};
using Stream = std::unique_ptr<std::FILE, CloseStream>;

/// Opens a regular file for reading alone, as open_readonly() does. Errors: as there.
Result<Stream> open_stream(const char* path);

} // namespace nearfar::os
