// Mappings of files that no call of the recorder made: by a system call of the program's own.
//
// Limits         those that are there when the program ends.
// Thread safety  none: callers hold the recorder's lock
#pragma once

#include <cstddef>
#include <sys/stat.h>

namespace nearfar::crash::runtime {

/// A mapping that is shared and writable, and its file.
struct UnseenMapping {
  const char* start;
  const char* path;
  struct stat file;
};

/// Calls visit() for each mapping of a regular file that lies in no region of the pool. Allocates
/// nothing.
void for_each_unseen_mapping(void (*visit)(const UnseenMapping&));

} // namespace nearfar::crash::runtime
