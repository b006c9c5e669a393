#include "crash/runtime/unseen_mappings.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>

#include "crash/runtime/recording.hpp"
#include "os/file.hpp"

namespace nearfar::crash::runtime {

namespace {

constexpr std::size_t line_bytes = 4096 + 128; ///< addresses, and a path

bool is_ours(const char* start) {
  for (int i = 0; i < regions.count; ++i) {
    const RecordedRegion& region = regions.region[i];
    if (static_cast<std::size_t>(start - region.start) < region.bytes ||
        static_cast<std::size_t>(start - region.alias) < region.bytes)
      return true;
  }
  return false;
}

/// The C library itself maps a semaphore that has a name.
bool is_semaphore(const char* path) {
  constexpr char folder[] = "/dev/shm/sem.";
  return std::strncmp(path, folder, sizeof folder - 1) == 0;
}

/// A line of /proc/self/maps (proc(5)).
void visit_line(const char* line, unseen_mappings::Visit* visit) {
  std::uintptr_t start = 0;
  char rights[5] = "";
  int path = 0;
  if (std::sscanf(line, "%zx-%*x %4s %*x %*s %*u %n", &start, rights, &path) != 2 ||
      rights[1] != 'w' || rights[3] != 's' || line[path] != '/' || is_semaphore(line + path))
    return;
  UnseenMapping found{reinterpret_cast<const char*>(start), line + path, {}};
  if (!is_ours(found.start) && stat(found.path, &found.file) == 0 && S_ISREG(found.file.st_mode))
    visit(found);
}

} // namespace

void for_each_unseen_mapping(unseen_mappings::Visit* visit) {
  const os::File maps(open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  static char text[line_bytes]; // the stack of the program may be small
  std::size_t used = 0;
  for (;;) {
    const ssize_t got = ::read(maps.fd(), text + used, sizeof text - 1 - used);
    if (got <= 0) return;
    used += static_cast<std::size_t>(got);
    char* line = text;
    while (char* const end = static_cast<char*>(
               std::memchr(line, '\n', used - static_cast<std::size_t>(line - text)))) {
      *end = '\0';
      visit_line(line, visit);
      line = end + 1;
    }
    used -= static_cast<std::size_t>(line - text);
    std::memmove(text, line, used);
    if (used == sizeof text - 1) used = 0; // no line is so long
  }
}

} // namespace nearfar::crash::runtime
