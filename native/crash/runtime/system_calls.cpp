// Calls of the C library by which the kernel stores what it knows (of a file, a clock, a socket) to memory
// that the caller names (storing_calls.hpp). A call that is not listed here, and stores to the pool, fails
// with EFAULT. Calls that read files are in files.cpp, those of syscall() in raw_calls.cpp.
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <fcntl.h>
#include <linux/capability.h>
#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/utsname.h>

#include "crash/runtime/page_rights.hpp"
#include "crash/runtime/recording.hpp"
#include "crash/runtime/replaced.hpp"
#include "crash/runtime/storing_calls.hpp"

using namespace nearfar::crash::runtime;

// A function takes its arguments in registers, whatever their types.
#define NEARFAR_STORES(name, ...)                                                                  \
  NEARFAR_EXPORT long storing_##name(long a, long b, long c, long d, long e, long f) asm(#name);   \
  long storing_##name(long a, long b, long c, long d, long e, long f) {                            \
    static auto* const real = next<long(long, long, long, long, long, long)>(#name);               \
    static constexpr Output outputs[] = {__VA_ARGS__};                                             \
    const StoringCall call({a, b, c, d, e, f}, outputs, NEARFAR_CALLER);                           \
    const auto& [first, second, third, fourth, fifth, sixth] = call.words();                       \
    return call.finish(real(first, second, third, fourth, fifth, sixth), #name "()");              \
  }
// Files.
NEARFAR_STORES(stat, item(1, sizeof(struct stat)))
NEARFAR_STORES(lstat, item(1, sizeof(struct stat)))
NEARFAR_STORES(fstat, item(1, sizeof(struct stat)))
NEARFAR_STORES(fstatat, item(2, sizeof(struct stat)))
NEARFAR_STORES(stat64, item(1, sizeof(struct stat64)))
NEARFAR_STORES(lstat64, item(1, sizeof(struct stat64)))
NEARFAR_STORES(fstat64, item(1, sizeof(struct stat64)))
NEARFAR_STORES(fstatat64, item(2, sizeof(struct stat64)))
NEARFAR_STORES(__xstat, item(2, sizeof(struct stat)))
NEARFAR_STORES(__lxstat, item(2, sizeof(struct stat)))
NEARFAR_STORES(__fxstat, item(2, sizeof(struct stat)))
NEARFAR_STORES(__fxstatat, item(3, sizeof(struct stat)))
NEARFAR_STORES(__xstat64, item(2, sizeof(struct stat64)))
NEARFAR_STORES(__lxstat64, item(2, sizeof(struct stat64)))
NEARFAR_STORES(__fxstat64, item(2, sizeof(struct stat64)))
NEARFAR_STORES(__fxstatat64, item(3, sizeof(struct stat64)))
NEARFAR_STORES(statx, item(4, sizeof(struct statx)))
NEARFAR_STORES(statfs, item(1, sizeof(struct statfs)))
NEARFAR_STORES(fstatfs, item(1, sizeof(struct statfs)))
NEARFAR_STORES(statfs64, item(1, sizeof(struct statfs64)))
NEARFAR_STORES(fstatfs64, item(1, sizeof(struct statfs64)))
NEARFAR_STORES(getcwd, text(0, 1))
NEARFAR_STORES(__getcwd_chk, text(0, 1))
NEARFAR_STORES(ttyname_r, text(1, 2))
NEARFAR_STORES(readlink, returned(1, 2))
NEARFAR_STORES(__readlink_chk, returned(1, 2))
NEARFAR_STORES(readlinkat, returned(2, 3))
NEARFAR_STORES(__readlinkat_chk, returned(2, 3))
NEARFAR_STORES(getxattr, returned(2, 3))
NEARFAR_STORES(lgetxattr, returned(2, 3))
NEARFAR_STORES(fgetxattr, returned(2, 3))
NEARFAR_STORES(listxattr, returned(1, 2))
NEARFAR_STORES(llistxattr, returned(1, 2))
NEARFAR_STORES(flistxattr, returned(1, 2))
NEARFAR_STORES(getdents64, returned(1, 2))
NEARFAR_STORES(name_to_handle_at, changed(2, 1024), item(3, sizeof(int)))
NEARFAR_STORES(fcntl, changed(2, sizeof(struct flock)))
NEARFAR_STORES(fcntl64, changed(2, sizeof(struct flock64)))
NEARFAR_STORES(ioctl, changed(2, nearfar::os::page_bytes))
NEARFAR_STORES(pipe, item(0, 2 * sizeof(int)))
NEARFAR_STORES(pipe2, item(0, 2 * sizeof(int)))
NEARFAR_STORES(splice, changed(1, sizeof(off_t)), changed(3, sizeof(off_t)))
// What is ready.
NEARFAR_STORES(poll, items(0, 1, sizeof(pollfd)))
NEARFAR_STORES(__poll_chk, items(0, 1, sizeof(pollfd)))
NEARFAR_STORES(ppoll, items(0, 1, sizeof(pollfd)))
NEARFAR_STORES(__ppoll_chk, items(0, 1, sizeof(pollfd)))
NEARFAR_STORES(select, changed(1, sizeof(fd_set)), changed(2, sizeof(fd_set)),
               changed(3, sizeof(fd_set)), changed(4, sizeof(timeval)))
NEARFAR_STORES(pselect, changed(1, sizeof(fd_set)), changed(2, sizeof(fd_set)),
               changed(3, sizeof(fd_set)))
NEARFAR_STORES(epoll_wait, returned(1, 2, sizeof(epoll_event)))
NEARFAR_STORES(epoll_pwait, returned(1, 2, sizeof(epoll_event)))
NEARFAR_STORES(epoll_pwait2, returned(1, 2, sizeof(epoll_event)))
// Sockets and messages.
NEARFAR_STORES(socketpair, item(3, 2 * sizeof(int)))
NEARFAR_STORES(accept, sized(1, 2), item(2, sizeof(socklen_t)))
NEARFAR_STORES(accept4, sized(1, 2), item(2, sizeof(socklen_t)))
NEARFAR_STORES(getsockname, sized(1, 2), item(2, sizeof(socklen_t)))
NEARFAR_STORES(getpeername, sized(1, 2), item(2, sizeof(socklen_t)))
NEARFAR_STORES(getsockopt, sized(3, 4), item(4, sizeof(socklen_t)))
NEARFAR_STORES(recv, returned(1, 2))
NEARFAR_STORES(__recv_chk, returned(1, 2))
NEARFAR_STORES(recvfrom, returned(1, 2), sized(4, 5), item(5, sizeof(socklen_t)))
NEARFAR_STORES(mq_receive, returned(1, 2), item(3, sizeof(unsigned)))
NEARFAR_STORES(mq_timedreceive, returned(1, 2), item(3, sizeof(unsigned)))
NEARFAR_STORES(mq_setattr, item(2, sizeof(mq_attr)))
NEARFAR_STORES(mq_getattr, item(1, sizeof(mq_attr)))
NEARFAR_STORES(msgrcv, returned(1, 2, 1, sizeof(long)))
NEARFAR_STORES(msgctl, changed(2, sizeof(msqid_ds)))
NEARFAR_STORES(semctl, changed(3, sizeof(semid_ds)))
NEARFAR_STORES(shmctl, changed(2, sizeof(shmid_ds)))
// Processes and their resources.
NEARFAR_STORES(wait, item(0, sizeof(int)))
NEARFAR_STORES(waitpid, item(1, sizeof(int)))
NEARFAR_STORES(wait3, item(0, sizeof(int)), item(2, sizeof(rusage)))
NEARFAR_STORES(wait4, item(1, sizeof(int)), item(3, sizeof(rusage)))
NEARFAR_STORES(waitid, item(2, sizeof(siginfo_t)))
NEARFAR_STORES(getrusage, item(1, sizeof(rusage)))
NEARFAR_STORES(getrlimit, item(1, sizeof(rlimit)))
NEARFAR_STORES(getrlimit64, item(1, sizeof(rlimit64)))
NEARFAR_STORES(prlimit, item(3, sizeof(rlimit)))
NEARFAR_STORES(prlimit64, item(3, sizeof(rlimit64)))
NEARFAR_STORES(getgroups, returned(1, 0, sizeof(gid_t)))
NEARFAR_STORES(__getgroups_chk, returned(1, 0, sizeof(gid_t)))
NEARFAR_STORES(getresuid, item(0, sizeof(uid_t)), item(1, sizeof(uid_t)), item(2, sizeof(uid_t)))
NEARFAR_STORES(getresgid, item(0, sizeof(gid_t)), item(1, sizeof(gid_t)), item(2, sizeof(gid_t)))
NEARFAR_STORES(capget, changed(1, 2 * sizeof(__user_cap_data_struct)))
NEARFAR_STORES(prctl, changed(1, nearfar::os::page_bytes))
NEARFAR_STORES(sched_getparam, item(1, sizeof(sched_param)))
NEARFAR_STORES(sched_getaffinity, changed(2, sizeof(cpu_set_t)))
NEARFAR_STORES(pthread_getaffinity_np, changed(2, sizeof(cpu_set_t)))
NEARFAR_STORES(sched_rr_get_interval, item(1, sizeof(timespec)))
NEARFAR_STORES(getcpu, item(0, sizeof(unsigned)), item(1, sizeof(unsigned)))
NEARFAR_STORES(mincore, changed(2, nearfar::os::page_bytes))
NEARFAR_STORES(sigpending, item(0, sizeof(std::uint64_t)))
NEARFAR_STORES(sigwaitinfo, item(1, sizeof(siginfo_t)))
NEARFAR_STORES(sigtimedwait, item(1, sizeof(siginfo_t)))
// The system.
NEARFAR_STORES(uname, item(0, sizeof(utsname)))
NEARFAR_STORES(sysinfo, item(0, sizeof(struct sysinfo)))
NEARFAR_STORES(klogctl, returned(1, 2))
NEARFAR_STORES(quotactl, changed(3, nearfar::os::page_bytes))
NEARFAR_STORES(getrandom, returned(0, 1))
// Clocks and timers.
NEARFAR_STORES(clock_gettime, item(1, sizeof(timespec)))
NEARFAR_STORES(clock_getres, item(1, sizeof(timespec)))
NEARFAR_STORES(gettimeofday, item(0, sizeof(timeval)))
NEARFAR_STORES(times, item(0, sizeof(tms)))
NEARFAR_STORES(adjtimex, item(0, sizeof(timex)))
NEARFAR_STORES(clock_adjtime, item(1, sizeof(timex)))
NEARFAR_STORES(nanosleep, changed(1, sizeof(timespec)))
NEARFAR_STORES(clock_nanosleep, changed(3, sizeof(timespec)))
NEARFAR_STORES(getitimer, item(1, sizeof(itimerval)))
NEARFAR_STORES(setitimer, item(2, sizeof(itimerval)))
NEARFAR_STORES(timer_gettime, item(1, sizeof(itimerspec)))
NEARFAR_STORES(timer_settime, item(3, sizeof(itimerspec)))
NEARFAR_STORES(timerfd_gettime, item(1, sizeof(itimerspec)))
NEARFAR_STORES(timerfd_settime, item(3, sizeof(itimerspec)))
#undef NEARFAR_STORES

namespace {

/// Where the kernel can store what the caller wants to have at `to`.
void* in_pool(void* to, std::size_t bytes) {
  char* const own = writable(to, bytes);
  return own != nullptr ? own : to;
}

/// A message has parts, an address and control data.
ssize_t receive(int fd, msghdr* message, int flags, const void* code) {
  if (regions.count == 0 || message == nullptr || message->msg_iovlen > IOV_MAX)
    return system_call(SYS_recvmsg, fd, message, flags);
  settle_stores();
  msghdr own = *message;
  iovec parts[IOV_MAX];
  own.msg_iov = parts;
  for (std::size_t i = 0; i < own.msg_iovlen; ++i) {
    const iovec& part = message->msg_iov[i];
    parts[i] = {in_pool(part.iov_base, part.iov_len), part.iov_len};
  }
  own.msg_name = in_pool(own.msg_name, own.msg_namelen);
  own.msg_control = in_pool(own.msg_control, own.msg_controllen);
  const ssize_t got = system_call(SYS_recvmsg, fd, &own, flags);
  if (got < 0) return got;
  report_store(EventKind::store, message->msg_name, own.msg_namelen, code);
  report_store(EventKind::store, message->msg_control, own.msg_controllen, code);
  message->msg_namelen = own.msg_namelen;
  message->msg_controllen = own.msg_controllen;
  message->msg_flags = own.msg_flags;
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

} // namespace

extern "C" {

NEARFAR_EXPORT ssize_t recvmsg(int fd, msghdr* message, int flags) {
  return receive(fd, message, flags, NEARFAR_CALLER);
}
/// Several messages, one after another.
NEARFAR_EXPORT int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* wait) {
  static auto* const real = next<int(int, mmsghdr*, unsigned, int, timespec*)>("recvmmsg");
  if (regions.count == 0) return real(fd, messages, count, flags, wait);
  unsigned done = 0;
  for (; done < count; ++done) {
    const int asked = flags & ~MSG_WAITFORONE;
    const ssize_t got = receive(fd, &messages[done].msg_hdr, asked, NEARFAR_CALLER);
    if (got < 0) break;
    messages[done].msg_len = static_cast<unsigned>(got);
    if ((flags & MSG_WAITFORONE) != 0) flags |= MSG_DONTWAIT;
  }
  return done > 0 ? static_cast<int>(done) : -1;
}
}
