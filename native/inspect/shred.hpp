// Overwriting a pool, and verifying that it was overwritten.
#pragma once

#include <functional>

#include "base/result.hpp"
#include "inspect/layout.hpp"
#include "os/file.hpp"

namespace nearfar::inspect {

struct Shredded {
  Offset bytes = 0;             ///< written, flushed, read again and compared
  bool read_from_cache = false; ///< the file system lives in memory or would not drop its pages
  os::BlockReuse blocks{};
};

/// Called with the bytes written and read so far; returning false stops the work.
using Progress = std::function<bool(Offset done, Offset of)>;

/// Fills a pool's file with random bytes from its end to its beginning: the header is last, so that
/// a shredding that was stopped can be repeated. Then flushes, drops the file's pages from the page
/// cache, reads all of it again and compares. Errors: bad_input (not a pool, or a pool set),
/// no_permission (not writable, or in use), failed_check (the bytes read differ from those
/// written), os_error.
Result<Shredded> shred(const char* path, const Progress& progress);

} // namespace nearfar::inspect
