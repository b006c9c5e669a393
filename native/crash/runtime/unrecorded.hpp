// The file next to a log in which a program leaves what is not recorded, a line each
// (python/nearfar/verify/recorder.py).
#pragma once

#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace nearfar::crash::runtime {

inline void note_unrecorded(const char* log, const char* line) {
  char name[4096 + 16];
  std::snprintf(name, sizeof name, "%s.unrecorded", log);
  const int file = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return;
  dprintf(file, "%s\n", line);
  close(file);
}

} // namespace nearfar::crash::runtime
