// Calls of the C library that read a file into the pool, that write to the pool's file or make it
// durable, or by which others learn of stores. They stand before the library's own.
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "crash/runtime/kernel.hpp"
#include "crash/runtime/page_rights.hpp"
#include "crash/runtime/recording.hpp"
#include "crash/runtime/replaced.hpp"
#include "crash/runtime/storing_calls.hpp"

using namespace nearfar::crash::runtime;

namespace {

/// A call that has written to a descriptor, of the pool or one by which others learn of stores.
template <class Call>
ssize_t write_to(int fd, const void* code, const Call& call) {
  settle_stores();
  const ssize_t written = call();
  if (written > 0 && regions.count > 0)
    if (const off_t end = lseek(fd, 0, SEEK_CUR); end >= written)
      report_written(fd, static_cast<std::uint64_t>(end - written),
                     static_cast<std::size_t>(written), code);
  return written;
}
/// One that names the offset in the file.
template <class Call>
ssize_t write_at(int fd, off_t offset, const void* code, const Call& call) {
  settle_stores();
  const ssize_t written = call();
  if (written > 0 && regions.count > 0)
    report_written(fd, static_cast<std::uint64_t>(offset), static_cast<std::size_t>(written), code);
  return written;
}

/// A call that reads so many items into memory: into the pool through its writable mapping, for the
/// kernel cannot store to a page that is read-only; then it is a store. Returns what the call does.
template <class Call>
auto read_into(void* to, std::size_t items, const void* code, const Call& call,
               std::size_t item_bytes = 1) {
  settle_stores();
  char* const own = writable(to, items * item_bytes);
  const auto got = call(own != nullptr ? own : to);
  if (own != nullptr && static_cast<std::ptrdiff_t>(got) > 0)
    report_store(EventKind::store, to, static_cast<std::size_t>(got) * item_bytes, code);
  return got;
}

/// The same, into several parts.
template <class Call>
ssize_t read_into_parts(const iovec* parts, int count, const void* code, const Call& call) {
  settle_stores();
  if (count < 0 || count > IOV_MAX || regions.count == 0) return call(parts);
  iovec own[IOV_MAX];
  for (int i = 0; i < count; ++i) {
    char* const at = writable(parts[i].iov_base, parts[i].iov_len);
    own[i] = {at != nullptr ? at : parts[i].iov_base, parts[i].iov_len};
  }
  const ssize_t got = call(own);
  auto left = static_cast<std::size_t>(got > 0 ? got : 0);
  for (int i = 0; i < count && left > 0; ++i) {
    const std::size_t bytes = std::min(left, parts[i].iov_len);
    if (own[i].iov_base != parts[i].iov_base)
      report_store(EventKind::store, parts[i].iov_base, bytes, code);
    left -= bytes;
  }
  return got;
}

} // namespace

extern "C" {

NEARFAR_EXPORT ssize_t read(int fd, void* to, std::size_t bytes) {
  return read_into(to, bytes, NEARFAR_CALLER,
                   [&](void* at) { return system_call(SYS_read, fd, at, bytes); });
}
NEARFAR_EXPORT ssize_t pread(int fd, void* to, std::size_t bytes, off_t offset) {
  return read_into(to, bytes, NEARFAR_CALLER,
                   [&](void* at) { return system_call(SYS_pread64, fd, at, bytes, offset); });
}
NEARFAR_EXPORT ssize_t pread64(int fd, void* to, std::size_t bytes, off64_t offset) {
  return read_into(to, bytes, NEARFAR_CALLER,
                   [&](void* at) { return system_call(SYS_pread64, fd, at, bytes, offset); });
}
NEARFAR_EXPORT std::size_t fread(void* to, std::size_t bytes, std::size_t items, FILE* file) {
  static auto* const real = next<std::size_t(void*, std::size_t, std::size_t, FILE*)>("fread");
  return read_into(
      to, items, NEARFAR_CALLER, [&](void* at) { return real(at, bytes, items, file); }, bytes);
}
NEARFAR_EXPORT std::size_t fread_unlocked(void* to, std::size_t bytes, std::size_t items,
                                          FILE* file) {
  static auto* const real =
      next<std::size_t(void*, std::size_t, std::size_t, FILE*)>("fread_unlocked");
  return read_into(
      to, items, NEARFAR_CALLER, [&](void* at) { return real(at, bytes, items, file); }, bytes);
}
NEARFAR_EXPORT ssize_t readv(int fd, const iovec* parts, int count) {
  return read_into_parts(parts, count, NEARFAR_CALLER,
                         [&](const iovec* own) { return system_call(SYS_readv, fd, own, count); });
}
NEARFAR_EXPORT ssize_t preadv(int fd, const iovec* parts, int count, off_t offset) {
  return read_into_parts(parts, count, NEARFAR_CALLER, [&](const iovec* own) {
    return system_call(SYS_preadv, fd, own, count, offset, 0);
  });
}
NEARFAR_EXPORT ssize_t preadv2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  return read_into_parts(parts, count, NEARFAR_CALLER, [&](const iovec* own) {
    return system_call(SYS_preadv2, fd, own, count, offset, 0, flags);
  });
}
NEARFAR_EXPORT ssize_t preadv64v2(int fd, const iovec* parts, int count, off64_t offset,
                                  int flags) {
  return read_into_parts(parts, count, NEARFAR_CALLER, [&](const iovec* own) {
    return system_call(SYS_preadv2, fd, own, count, offset, 0, flags);
  });
}
NEARFAR_EXPORT ssize_t process_vm_readv(pid_t process, const iovec* parts, unsigned long count,
                                        const iovec* from, unsigned long from_count,
                                        unsigned long flags) noexcept {
  const auto call = [&](const iovec* own) {
    return system_call(SYS_process_vm_readv, process, own, count, from, from_count, flags);
  };
  return read_into_parts(parts, static_cast<int>(count), NEARFAR_CALLER, call);
}
NEARFAR_EXPORT ssize_t preadv64(int fd, const iovec* parts, int count, off64_t offset) {
  return read_into_parts(parts, count, NEARFAR_CALLER, [&](const iovec* own) {
    return system_call(SYS_preadv, fd, own, count, offset, 0);
  });
}
NEARFAR_EXPORT int getentropy(void* to, std::size_t bytes) {
  if (bytes > 256) {
    errno = EIO;
    return -1;
  }
  const ssize_t got = read_into(to, bytes, NEARFAR_CALLER,
                                [&](void* at) { return system_call(SYS_getrandom, at, bytes, 0); });
  return got == static_cast<ssize_t>(bytes) ? 0 : -1;
}
NEARFAR_EXPORT ssize_t write(int fd, const void* from, std::size_t bytes) {
  return write_to(fd, NEARFAR_CALLER, [&] { return system_call(SYS_write, fd, from, bytes); });
}
NEARFAR_EXPORT ssize_t writev(int fd, const iovec* parts, int count) {
  return write_to(fd, NEARFAR_CALLER, [&] { return system_call(SYS_writev, fd, parts, count); });
}
NEARFAR_EXPORT ssize_t pwrite(int fd, const void* from, std::size_t bytes, off_t offset) {
  return write_at(fd, offset, NEARFAR_CALLER,
                  [&] { return system_call(SYS_pwrite64, fd, from, bytes, offset); });
}
NEARFAR_EXPORT ssize_t pwrite64(int fd, const void* from, std::size_t bytes, off64_t offset) {
  return write_at(fd, offset, NEARFAR_CALLER,
                  [&] { return system_call(SYS_pwrite64, fd, from, bytes, offset); });
}
NEARFAR_EXPORT ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  return write_at(fd, offset, NEARFAR_CALLER,
                  [&] { return system_call(SYS_pwritev, fd, parts, count, offset, 0); });
}
NEARFAR_EXPORT ssize_t pwritev64(int fd, const iovec* parts, int count, off64_t offset) {
  return write_at(fd, offset, NEARFAR_CALLER,
                  [&] { return system_call(SYS_pwritev, fd, parts, count, offset, 0); });
}
NEARFAR_EXPORT ssize_t sendfile(int fd, int from, off_t* offset, std::size_t bytes) noexcept {
  static constexpr Output moved[] = {changed(2, sizeof *offset)};
  const Words words{fd, from, as_word(offset), as_word(bytes)};
  const StoringCall call(words, moved, NEARFAR_CALLER);
  const ssize_t sent =
      write_to(fd, NEARFAR_CALLER, [&] { return system_call_of(SYS_sendfile, call.words()); });
  return call.finish(sent, "sendfile()");
}
NEARFAR_EXPORT ssize_t sendfile64(int fd, int from, off64_t* offset, std::size_t bytes) noexcept {
  return sendfile(fd, from, offset, bytes);
}
NEARFAR_EXPORT ssize_t copy_file_range(int from, off64_t* from_offset, int fd, off64_t* offset,
                                       std::size_t bytes, unsigned flags) {
  static constexpr Output moved[] = {changed(1, sizeof *offset), changed(3, sizeof *offset)};
  const Words words{from,           as_word(from_offset), fd, as_word(offset),
                    as_word(bytes), as_word(flags)};
  const StoringCall call(words, moved, NEARFAR_CALLER);
  const auto copy = [&] { return system_call_of(SYS_copy_file_range, call.words()); };
  const ssize_t copied = offset == nullptr ? write_to(fd, NEARFAR_CALLER, copy)
                                           : write_at(fd, *offset, NEARFAR_CALLER, copy);
  return call.finish(copied, "copy_file_range()");
}
NEARFAR_EXPORT int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  const auto done = static_cast<int>(system_call(SYS_fallocate, fd, mode, offset, bytes));
  if (done == 0 && (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0)
    report_zeroed(fd, static_cast<std::uint64_t>(offset), static_cast<std::size_t>(bytes),
                  NEARFAR_CALLER);
  resized(fd);
  return done;
}
NEARFAR_EXPORT int fallocate64(int fd, int mode, off64_t offset, off64_t bytes) {
  return fallocate(fd, mode, offset, bytes);
}
NEARFAR_EXPORT int fsync(int fd) {
  report_synced(fd, NEARFAR_CALLER);
  return static_cast<int>(system_call(SYS_fsync, fd));
}
NEARFAR_EXPORT int fdatasync(int fd) {
  report_synced(fd, NEARFAR_CALLER);
  return static_cast<int>(system_call(SYS_fdatasync, fd));
}
NEARFAR_EXPORT int syncfs(int fd) noexcept {
  report_synced_file_system(fd, NEARFAR_CALLER);
  return static_cast<int>(system_call(SYS_syncfs, fd));
}
NEARFAR_EXPORT void sync() noexcept {
  if (regions.count > 0) report_all_synced(NEARFAR_CALLER);
  system_call(SYS_sync);
}
}
