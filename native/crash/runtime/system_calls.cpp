// Calls of the C library by which the kernel stores what it knows (of a file, a clock, a socket) to memory
// that the caller names. Where that is in the pool, the kernel cannot store to a page that is read-only:
// it does through the recorder's writable mapping, and the call is recorded as a store. Calls that read
// files are in files.cpp.
//
// Limits         system calls that are not listed here fail with EFAULT. Those that the program makes
//                by syscall() are noted.
#include <array>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "crash/runtime/page_rights.hpp"
#include "crash/runtime/recording.hpp"
#include "crash/runtime/replaced.hpp"

using namespace nearfar::crash::runtime;

namespace {

/// Memory that a call stores to. While it lives, the call has at() in its stead.
template <class Item>
class Output {
public:
  Output(Item* to, std::size_t bytes, const void* code) : to_(to), bytes_(bytes), code_(code) {
    if (regions.count == 0 || to == nullptr || region_of(to) == nullptr) return;
    settle_stores();
    own_ = writable(to, bytes);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  Item* at() const { return own_ == nullptr ? to_ : reinterpret_cast<Item*>(own_); }
  /// The call has stored so many bytes.
  void stored(std::size_t bytes) const {
    if (own_ != nullptr && bytes > 0)
      report_store(EventKind::store, to_, bytes < bytes_ ? bytes : bytes_, code_);
  }
  void stored() const { stored(bytes_); }

private:
  Item* to_;
  std::size_t bytes_;
  const void* code_;
  char* own_ = nullptr;
};

/// A call that stores one item if it succeeds.
template <class Item, class Call>
auto fill(Item* to, const void* code, const Call& call, std::size_t count = 1) {
  const Output<Item> output(to, count * sizeof(Item), code);
  const auto done = call(output.at());
  if (done != static_cast<decltype(done)>(-1)) output.stored();
  return done;
}

/// A call that stores as many items as it returns.
template <class Item, class Call>
auto fill_some(Item* to, std::size_t most, const void* code, const Call& call) {
  const Output<Item> output(to, most * sizeof(Item), code);
  const auto got = call(output.at());
  if (got > 0) output.stored(static_cast<std::size_t>(got) * sizeof(Item));
  return got;
}

/// A call that stores an address, and its size.
template <class Call>
int fill_sized(void* to, socklen_t* size, const void* code, const Call& call) {
  const socklen_t most = size == nullptr ? 0 : *size;
  const Output<void> output(to, most, code);
  const Output<socklen_t> size_output(size, sizeof *size, code);
  const int done = call(output.at(), size_output.at());
  if (done == -1) return done;
  output.stored(size == nullptr ? 0 : *size);
  size_output.stored();
  return done;
}

} // namespace

extern "C" {

#define NEARFAR_REAL(name) static auto* const real = next<decltype(name)>(#name)
#define NEARFAR_FILL(result, name, item, parameters, ...)                                          \
  NEARFAR_EXPORT result name parameters noexcept {                                                 \
    NEARFAR_REAL(name);                                                                            \
    return fill(to, NEARFAR_CALLER, [&](item* at) { return real(__VA_ARGS__); });                  \
  }
NEARFAR_FILL(int, uname, utsname, (utsname * to), at)
NEARFAR_FILL(int, stat, struct stat, (const char* path, struct stat* to), path, at)
NEARFAR_FILL(int, lstat, struct stat, (const char* path, struct stat* to), path, at)
NEARFAR_FILL(int, fstat, struct stat, (int fd, struct stat* to), fd, at)
NEARFAR_FILL(int, fstatat, struct stat, (int fd, const char* path, struct stat* to, int flags), fd,
             path, at, flags)
NEARFAR_FILL(int, stat64, struct stat64, (const char* path, struct stat64* to), path, at)
NEARFAR_FILL(int, lstat64, struct stat64, (const char* path, struct stat64* to), path, at)
NEARFAR_FILL(int, fstat64, struct stat64, (int fd, struct stat64* to), fd, at)
NEARFAR_FILL(int, fstatat64, struct stat64,
             (int fd, const char* path, struct stat64* to, int flags), fd, path, at, flags)
NEARFAR_FILL(int, statx, struct statx,
             (int fd, const char* path, int flags, unsigned mask, struct statx* to), fd, path,
             flags, mask, at)
NEARFAR_FILL(int, statfs, struct statfs, (const char* path, struct statfs* to), path, at)
NEARFAR_FILL(int, fstatfs, struct statfs, (int fd, struct statfs* to), fd, at)
NEARFAR_FILL(int, clock_gettime, timespec, (clockid_t clock, timespec* to), clock, at)
NEARFAR_FILL(int, clock_getres, timespec, (clockid_t clock, timespec* to), clock, at)
NEARFAR_FILL(int, getrusage, rusage, (__rusage_who_t who, rusage* to), who, at)
NEARFAR_FILL(int, getrlimit, rlimit, (__rlimit_resource_t what, rlimit* to), what, at)
NEARFAR_FILL(int, sysinfo, struct sysinfo, (struct sysinfo * to), at)
NEARFAR_FILL(clock_t, times, tms, (tms * to), at)
#undef NEARFAR_FILL

NEARFAR_EXPORT int gettimeofday(timeval* to, void* zone) noexcept {
  NEARFAR_REAL(gettimeofday);
  return fill(to, NEARFAR_CALLER, [&](timeval* at) { return real(at, zone); });
}
NEARFAR_EXPORT int pipe(int* to) noexcept {
  NEARFAR_REAL(pipe);
  return fill(to, NEARFAR_CALLER, [&](int* at) { return real(at); }, 2);
}
NEARFAR_EXPORT int pipe2(int* to, int flags) noexcept {
  NEARFAR_REAL(pipe2);
  return fill(to, NEARFAR_CALLER, [&](int* at) { return real(at, flags); }, 2);
}
NEARFAR_EXPORT int socketpair(int domain, int type, int protocol, int* to) noexcept {
  NEARFAR_REAL(socketpair);
  const auto call = [&](int* at) { return real(domain, type, protocol, at); };
  return fill(to, NEARFAR_CALLER, call, 2);
}
NEARFAR_EXPORT pid_t waitpid(pid_t child, int* to, int options) {
  NEARFAR_REAL(waitpid);
  return fill(to, NEARFAR_CALLER, [&](int* at) { return real(child, at, options); });
}
NEARFAR_EXPORT pid_t wait(int* to) {
  NEARFAR_REAL(wait);
  return fill(to, NEARFAR_CALLER, [&](int* at) { return real(at); });
}
NEARFAR_EXPORT char* getcwd(char* to, std::size_t bytes) noexcept {
  NEARFAR_REAL(getcwd);
  const Output<char> output(to, bytes, NEARFAR_CALLER);
  char* const got = real(output.at(), bytes);
  if (got == nullptr || got != output.at()) return got;
  output.stored(std::strlen(got) + 1);
  return to;
}
NEARFAR_EXPORT ssize_t readlink(const char* path, char* to, std::size_t bytes) noexcept {
  NEARFAR_REAL(readlink);
  return fill_some(to, bytes, NEARFAR_CALLER, [&](char* at) { return real(path, at, bytes); });
}
NEARFAR_EXPORT ssize_t readlinkat(int fd, const char* path, char* to, std::size_t bytes) noexcept {
  NEARFAR_REAL(readlinkat);
  const auto call = [&](char* at) { return real(fd, path, at, bytes); };
  return fill_some(to, bytes, NEARFAR_CALLER, call);
}
NEARFAR_EXPORT int poll(pollfd* to, nfds_t count, int wait_ms) {
  NEARFAR_REAL(poll);
  return fill(to, NEARFAR_CALLER, [&](pollfd* at) { return real(at, count, wait_ms); }, count);
}
NEARFAR_EXPORT int ppoll(pollfd* to, nfds_t count, const timespec* wait, const sigset_t* mask) {
  NEARFAR_REAL(ppoll);
  return fill(to, NEARFAR_CALLER, [&](pollfd* at) { return real(at, count, wait, mask); }, count);
}
NEARFAR_EXPORT int epoll_wait(int fd, epoll_event* to, int most, int wait_ms) {
  NEARFAR_REAL(epoll_wait);
  const auto call = [&](epoll_event* at) { return real(fd, at, most, wait_ms); };
  return fill_some(to, static_cast<std::size_t>(most > 0 ? most : 0), NEARFAR_CALLER, call);
}
NEARFAR_EXPORT int epoll_pwait(int fd, epoll_event* to, int most, int wait_ms,
                               const sigset_t* mask) {
  NEARFAR_REAL(epoll_pwait);
  const auto call = [&](epoll_event* at) { return real(fd, at, most, wait_ms, mask); };
  return fill_some(to, static_cast<std::size_t>(most > 0 ? most : 0), NEARFAR_CALLER, call);
}
NEARFAR_EXPORT int getsockname(int fd, sockaddr* to, socklen_t* size) noexcept {
  NEARFAR_REAL(getsockname);
  return fill_sized(to, size, NEARFAR_CALLER, [&](void* at, socklen_t* size_at) {
    return real(fd, static_cast<sockaddr*>(at), size_at);
  });
}
NEARFAR_EXPORT int getpeername(int fd, sockaddr* to, socklen_t* size) noexcept {
  NEARFAR_REAL(getpeername);
  return fill_sized(to, size, NEARFAR_CALLER, [&](void* at, socklen_t* size_at) {
    return real(fd, static_cast<sockaddr*>(at), size_at);
  });
}
NEARFAR_EXPORT int accept(int fd, sockaddr* to, socklen_t* size) {
  NEARFAR_REAL(accept);
  return fill_sized(to, size, NEARFAR_CALLER, [&](void* at, socklen_t* size_at) {
    return real(fd, static_cast<sockaddr*>(at), size_at);
  });
}
NEARFAR_EXPORT int getsockopt(int fd, int level, int name, void* to, socklen_t* size) noexcept {
  NEARFAR_REAL(getsockopt);
  return fill_sized(to, size, NEARFAR_CALLER, [&](void* at, socklen_t* size_at) {
    return real(fd, level, name, at, size_at);
  });
}

NEARFAR_EXPORT int accept4(int fd, sockaddr* to, socklen_t* size, int flags) {
  NEARFAR_REAL(accept4);
  return fill_sized(to, size, NEARFAR_CALLER, [&](void* at, socklen_t* size_at) {
    return real(fd, static_cast<sockaddr*>(at), size_at, flags);
  });
}

/// How many bytes an older request stores is not known: what has changed is recorded, or, where that is
/// not looked for, an int.
NEARFAR_EXPORT int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list more;
  va_start(more, request);
  void* const to = va_arg(more, void*);
  va_end(more);
  settle_stores();
  char* const own = regions.count > 0 ? writable(to, 1) : nullptr;
  const auto done = static_cast<int>(syscall(SYS_ioctl, fd, request, own != nullptr ? own : to));
  if (own == nullptr || done == -1) return done;
  if (seen == Seen::callbacks) {
    const std::size_t named = _IOC_SIZE(request);
    report_store(EventKind::store, to, named > 0 ? named : sizeof(int), NEARFAR_CALLER);
    return done;
  }
  constexpr std::size_t page_bytes = RecordedRegion::page_bytes;
  const std::size_t bytes = page_bytes - reinterpret_cast<std::uintptr_t>(to) % page_bytes;
  report_changes(EventKind::store, {{static_cast<const std::byte*>(to), bytes}, false},
                 NEARFAR_CALLER);
  return done;
}

/// A message has parts, an address and control data.
NEARFAR_EXPORT ssize_t recvmsg(int fd, msghdr* message, int flags) {
  if (regions.count == 0 || message == nullptr || message->msg_iovlen > IOV_MAX)
    return syscall(SYS_recvmsg, fd, message, flags);
  settle_stores();
  const void* const code = NEARFAR_CALLER;
  msghdr own = *message;
  iovec parts[IOV_MAX];
  own.msg_iov = parts;
  for (std::size_t i = 0; i < own.msg_iovlen; ++i) {
    const iovec& part = message->msg_iov[i];
    char* const at = writable(part.iov_base, part.iov_len);
    parts[i] = {at != nullptr ? at : part.iov_base, part.iov_len};
  }
  const Output<void> address(own.msg_name, own.msg_namelen, code);
  const Output<void> control(own.msg_control, own.msg_controllen, code);
  own.msg_name = address.at();
  own.msg_control = control.at();
  const ssize_t got = syscall(SYS_recvmsg, fd, &own, flags);
  if (got < 0) return got;
  message->msg_namelen = own.msg_namelen;
  message->msg_controllen = own.msg_controllen;
  message->msg_flags = own.msg_flags;
  address.stored(own.msg_namelen);
  control.stored(own.msg_controllen);
  auto left = static_cast<std::size_t>(got);
  for (std::size_t i = 0; i < own.msg_iovlen && left > 0; ++i) {
    const iovec& part = message->msg_iov[i];
    const std::size_t bytes = left < part.iov_len ? left : part.iov_len;
    if (parts[i].iov_base != part.iov_base)
      report_store(EventKind::store, part.iov_base, bytes, code);
    left -= bytes;
  }
  return got;
}

/// Any system call. Which of its arguments are addresses is not known.
NEARFAR_EXPORT long syscall(long number, ...) noexcept {
  std::array<long, 6> given{};
  va_list more;
  va_start(more, number);
  for (long& one : given)
    one = va_arg(more, long);
  va_end(more);
  long done = number;
  register long fourth asm("r10") = given[3];
  register long fifth asm("r8") = given[4];
  register long sixth asm("r9") = given[5];
  asm volatile("syscall"
               : "+a"(done)
               : "D"(given[0]), "S"(given[1]), "d"(given[2]), "r"(fourth), "r"(fifth), "r"(sixth)
               : "rcx", "r11", "memory");
  if (done >= 0 || done < -4095) return done;
  if (done == -EFAULT && seen == Seen::faults)
    for (const long one : given)
      if (region_of(reinterpret_cast<const void*>(one)) != nullptr) note_refused_call();
  errno = static_cast<int>(-done);
  return -1;
}
}
