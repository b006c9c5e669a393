#include "os/library_descriptor.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <utility>

namespace nearfar::os {

namespace {

/// Descriptors below this need no larger table in the kernel than the usual limit of 1,024.
constexpr rlim_t usual_limit = 1024;
constexpr int numbers_below_limit = 32;

int highest_number() {
  rlimit limit{};
  const bool known = getrlimit(RLIMIT_NOFILE, &limit) == 0;
  return static_cast<int>(known && limit.rlim_cur < usual_limit ? limit.rlim_cur : usual_limit);
}

} // namespace

File move_to_high_descriptor(File file) {
  const int code = errno;
  for (int from = highest_number() - numbers_below_limit; from > file.fd(); from /= 2)
    if (const int high = fcntl(file.fd(), F_DUPFD_CLOEXEC, from); high >= 0) {
      errno = code;
      return File(high);
    }
  errno = code;
  return file;
}

void LibraryDescriptor::adopt(File file) {
  File high = move_to_high_descriptor(std::move(file));
  struct stat facts {};
  if (fstat(high.fd(), &facts) != 0) return;
  device_ = facts.st_dev;
  inode_ = facts.st_ino;
  fd_ = high.release();
}

int LibraryDescriptor::get() const {
  if (fd_ < 0) return -1;
  const int code = errno;
  struct stat facts {};
  const bool ours = fstat(fd_, &facts) == 0 && facts.st_dev == device_ && facts.st_ino == inode_;
  errno = code;
  return ours ? fd_ : -1;
}

void LibraryDescriptor::reopen(const char* path, int flags) {
  const int code = errno;
  File high = move_to_high_descriptor(File(open(path, flags | O_CLOEXEC)));
  fd_ = high.fd();
  if (get() >= 0) high.release();
  errno = code;
}

void LibraryDescriptor::close() {
  const File closing(get());
  fd_ = -1;
}

} // namespace nearfar::os
