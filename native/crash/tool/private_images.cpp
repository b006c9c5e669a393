// mmap() of this program stands before the C library's for all that is linked to it dynamically.
// The C library's header is left out: it declares the same names otherwise.
#include "crash/tool/private_images.hpp"

#include <cstddef>
#include <dlfcn.h>
#include <linux/mman.h>

namespace {

bool made_private = false;

using Map = void*(void*, std::size_t, int, int, int, long);

/// The next one, which may be the recorder's.
void* map(void* at, std::size_t bytes, int protection, int flags, int fd, long offset) {
  static Map* const next = reinterpret_cast<Map*>(dlsym(RTLD_NEXT, "mmap"));
  if (made_private && fd >= 0 && (flags & MAP_TYPE) != MAP_PRIVATE)
    flags = (flags & ~(MAP_TYPE | MAP_SYNC)) | MAP_PRIVATE;
  return next(at, bytes, protection, flags, fd, offset);
}

} // namespace

extern "C" {
[[gnu::visibility("default")]] void* mmap(void* at, std::size_t bytes, int protection, int flags,
                                          int fd, long offset) noexcept {
  return map(at, bytes, protection, flags, fd, offset);
}
[[gnu::visibility("default")]] void* mmap64(void* at, std::size_t bytes, int protection, int flags,
                                            int fd, long offset) noexcept {
  return map(at, bytes, protection, flags, fd, offset);
}
}

namespace nearfar::crash {

void make_mappings_private() { made_private = true; }

} // namespace nearfar::crash
