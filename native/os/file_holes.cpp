#include "os/file_holes.hpp"

#include <algorithm>
#include <cerrno>
#include <unistd.h>

namespace nearfar::os {

void each_filled_range(int fd, std::size_t bytes,
                       const std::function<void(std::size_t begin, std::size_t end)>& visit) {
  for (std::size_t at = 0; at < bytes;) {
    const off_t begin = lseek(fd, static_cast<off_t>(at), SEEK_DATA);
    if (begin < 0 && errno == ENXIO) return;
    const off_t end = begin < 0 ? -1 : lseek(fd, begin, SEEK_HOLE);
    if (end < 0) return visit(at, bytes);
    if (static_cast<std::size_t>(begin) >= bytes) return;
    at = std::min(static_cast<std::size_t>(end), bytes);
    visit(static_cast<std::size_t>(begin), at);
  }
}

} // namespace nearfar::os
