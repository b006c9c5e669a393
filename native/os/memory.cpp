#include "os/memory.hpp"

#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace nearfar::os {

namespace {

/// The value of a line "KEY:   123 kB" of a file in /proc, in bytes. Does not use stdio, whose
/// buffers would come from the allocator that is being measured.
Result<std::size_t> kibibytes_of(const char* path, const char* key) {
  char text[4096];
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  const int code = errno;
  if (fd >= 0) close(fd);
  if (got > 0) {
    text[got] = '\0';
    const char* line = std::strstr(text, key);
    std::uint64_t kibibytes = 0;
    if (line != nullptr && std::sscanf(line + std::strlen(key), "%" SCNu64, &kibibytes) == 1)
      return static_cast<std::size_t>(kibibytes) * 1024;
  }
  Error error = Error::make(Errc::os_error, "%s does not report '%s'", path, key);
  error.os_errno = got < 0 ? code : 0;
  return error.try_next("mount /proc, and use Linux 4.14 or later");
}

} // namespace

Result<ProcessMemory> process_memory() {
  Result<std::size_t> now = kibibytes_of("/proc/self/smaps_rollup", "\nRss:");
  if (!now) return now.error();
  Result<std::size_t> peak = kibibytes_of("/proc/self/status", "\nVmHWM:");
  if (!peak) return peak.error();
  return ProcessMemory{*now, *peak};
}

} // namespace nearfar::os
