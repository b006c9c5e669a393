#include "os/page_copier.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/address_space.hpp"
#include "os/library_descriptor.hpp"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

namespace nearfar::os {

namespace {

constexpr std::size_t touched_at_once = std::size_t{64} << 10; // one call instead of 16 faults

uffdio_range range_of(std::byte* at, std::size_t bytes) {
  return {reinterpret_cast<std::uintptr_t>(at), bytes};
}

/// A descriptor of the range's faults, invalid if the kernel has none.
File watch_faults(std::byte* at, std::size_t bytes) {
  // Only faults of the program itself, which needs no privilege; there will be none.
  File faults(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY)));
  if (faults.fd() < 0) return File();
  faults = move_to_high_descriptor(std::move(faults));
  uffdio_api api{UFFD_API, 0, 0};
  uffdio_register request{range_of(at, bytes), UFFDIO_REGISTER_MODE_MISSING, 0};
  constexpr unsigned long long needed = 1ull << _UFFDIO_COPY;
  const bool watched = ioctl(faults.fd(), UFFDIO_API, &api) == 0 &&
                       ioctl(faults.fd(), UFFDIO_REGISTER, &request) == 0 &&
                       (request.ioctls & needed) != 0;
  return watched ? std::move(faults) : File();
}

/// Copies what can be read, page by page. Returns false if the process may not use the call.
bool copy_readable(std::byte* to, const std::byte* from, std::size_t bytes) {
  const Read all = try_read(from, to, bytes);
  if (all != Read::absent) return all == Read::done;
  for (std::size_t at = 0; at < bytes; at += page_bytes)
    if (try_read(from + at, to + at, page_bytes) == Read::refused) return false;
  return true;
}

} // namespace

PageCopier::PageCopier(std::byte* to, std::size_t bytes)
    : to_(to), bytes_(bytes), filtered_(prctl(PR_GET_SECCOMP) != 0) {
  if (!filtered_) faults_ = watch_faults(to, bytes);
}

/// After this, pages can be touched: while the range is registered, no thread would answer the
/// fault. A child with a copy of the descriptor would keep the range registered.
void PageCopier::stop() {
  if (faults_.fd() < 0) return;
  uffdio_range range = range_of(to_, bytes_);
  ioctl(faults_.fd(), UFFDIO_UNREGISTER, &range);
  faults_ = File();
}

/// Returns how many bytes were copied.
std::size_t PageCopier::copy_by_kernel(std::byte* to, const std::byte* from,
                                       std::size_t bytes) const {
  std::size_t done = 0;
  while (done < bytes) {
    uffdio_copy request{reinterpret_cast<std::uintptr_t>(to + done),
                        reinterpret_cast<std::uintptr_t>(from + done), bytes - done, 0, 0};
    const int code = ioctl(faults_.fd(), UFFDIO_COPY, &request) == 0 ? 0 : errno;
    if (request.copy > 0) done += static_cast<std::size_t>(request.copy);
    if (code == EFAULT)
      done += page_bytes; // another thread has made the page inaccessible
    else if (code != 0 && code != EAGAIN)
      break;
  }
  return done;
}

void PageCopier::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::size_t done = 0;
  if (faults_.fd() >= 0 && (done = copy_by_kernel(to, from, bytes)) < bytes) stop();
  while (done < bytes) {
    const std::size_t part = bytes - done < touched_at_once ? bytes - done : touched_at_once;
    populate(to + done, part);
    if (filtered_ || !copy_readable(to + done, from + done, part))
      std::memcpy(to + done, from + done, part);
    done += part;
  }
}

} // namespace nearfar::os
