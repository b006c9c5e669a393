#include "os/mapping_calls.hpp"

#include <sys/syscall.h>
#include <unistd.h>

namespace nearfar::os {

void* call_mmap(void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, fd, offset));
}

void* call_mremap(void* old, std::size_t old_bytes, std::size_t bytes, int flags, void* target) {
  return reinterpret_cast<void*>(syscall(SYS_mremap, old, old_bytes, bytes, flags, target));
}

int call_munmap(void* at, std::size_t bytes) {
  return static_cast<int>(syscall(SYS_munmap, at, bytes));
}

} // namespace nearfar::os
