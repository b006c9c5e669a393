// The mappings of this process, from /proc/self/maps (proc(5)).
//
// Thread safety  none: callers hold the recorder's lock
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "os/file.hpp"

namespace nearfar::crash::runtime {

struct Mapping {
  std::uintptr_t start, end;
  const char* rights; ///< "rwxp" or "-", and "s" if it is shared
  const char* path;   ///< or a name in brackets; empty: it has none

  bool is_writable() const { return rights[1] == 'w'; }
  bool is_executable() const { return rights[2] == 'x'; }
  bool is_shared() const { return rights[3] == 's'; }
};

/// Calls visit(Mapping) for each. Allocates nothing.
template <class Visit>
void for_each_mapping(const Visit& visit) {
  static char text[4096 + 128]; // addresses and a path; the stack of the program may be small
  const os::File maps(open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  std::size_t used = 0;
  for (;;) {
    const ssize_t got = ::read(maps.fd(), text + used, sizeof text - 1 - used);
    if (got <= 0) return;
    used += static_cast<std::size_t>(got);
    char* line = text;
    while (char* const end = static_cast<char*>(
               std::memchr(line, '\n', used - static_cast<std::size_t>(line - text)))) {
      *end = '\0';
      Mapping found{};
      char rights[5] = "";
      int path = 0;
      if (std::sscanf(line, "%zx-%zx %4s %*x %*s %*u %n", &found.start, &found.end, rights,
                      &path) == 3) {
        found.rights = rights;
        found.path = line + path;
        visit(found);
      }
      line = end + 1;
    }
    used -= static_cast<std::size_t>(line - text);
    std::memmove(text, line, used);
    if (used == sizeof text - 1) used = 0; // no line is so long
  }
}

} // namespace nearfar::crash::runtime
