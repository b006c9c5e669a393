#include "os/file.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#ifndef STATX_ATTR_DAX
#define STATX_ATTR_DAX 0x00200000
#endif

namespace nearfar::os {

namespace {

constexpr mode_t owner_only = 0600;

Errc classify(int code) {
  switch (code) {
  case ENOENT:
  case ENOTDIR:
  case ENXIO:
  case ENODEV: return Errc::not_found;
  case EEXIST: return Errc::exists;
  case EISDIR: return Errc::bad_input;
  case EACCES:
  case EPERM:
  case EROFS: return Errc::no_permission;
  case ENOSPC:
  case EDQUOT:
  case EFBIG: return Errc::no_space;
  case EOPNOTSUPP:
  case EINVAL: return Errc::unsupported;
  default: return Errc::os_error;
  }
}

Error path_error(const char* doing, const char* path) {
  const int code = errno;
  // A long path is cut, so that the reason is not.
  Error error =
      Error::make(classify(code), "cannot %s %.190s: %s", doing, path, std::strerror(code));
  error.os_errno = code;
  switch (error.code) {
  case Errc::not_found: error.try_next("create it first, or name another path"); break;
  case Errc::exists:
    error.try_next(
        "name a file that does not exist yet: nearfar never overwrites one it did not make");
    break;
  case Errc::no_permission: error.try_next("choose a path that you may write to"); break;
  case Errc::bad_input: error.try_next("name a file inside the directory"); break;
  default: error.try_next("name another path");
  }
  return error;
}

} // namespace

bool is_directory(const char* path) {
  struct stat s {};
  return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

void remove_file(const char* path) { unlink(path); }

void unused_name(const char* directory, const char* ending, char* name, std::size_t bytes) {
  static std::atomic<unsigned> serial{0};
  std::snprintf(name, bytes, "%s/.nearfar-%d-%u%s", directory, static_cast<int>(getpid()), serial++,
                ending);
}

File::~File() {
  if (fd_ >= 0) close(fd_);
}

Result<File> create_unnamed(const char* directory) {
  if (Status s = check_directory(directory); !s) return s.error();
  const int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, owner_only);
  if (fd >= 0) return File(fd);
  if (errno != EOPNOTSUPP && errno != EISDIR) return path_error("create a file in", directory);
  char name[PATH_MAX]; // a file system without O_TMPFILE: make a name and take it away at once
  std::snprintf(name, sizeof name, "%s/.nearfar-%d-XXXXXX", directory, static_cast<int>(getpid()));
  const int made = mkostemp(name, O_CLOEXEC);
  if (made < 0) return path_error("create a file in", directory);
  unlink(name);
  return File(made);
}

Result<File> create_in_memory(const char* label) {
  const int fd = memfd_create(label, MFD_CLOEXEC);
  if (fd >= 0) return File(fd);
  return Error::make(Errc::os_error, "cannot make a file in memory: %s", std::strerror(errno));
}

Result<File> create_sized_in_memory(const char* label, std::uint64_t bytes) {
  rlimit limit{}; // above it, ftruncate() sends SIGXFSZ
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes)
    return Error::make(Errc::no_space, "cannot make a file in memory of %llu bytes: RLIMIT_FSIZE",
                       static_cast<unsigned long long>(bytes))
        .try_next("ulimit -f unlimited");
  File file(memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.fd() >= 0 && set_file_size(file.fd(), bytes) == 0 &&
      fcntl(file.fd(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
    return file;
  return Error::make(Errc::os_error, "cannot make a file in memory: %s", std::strerror(errno));
}

std::size_t read_at(const File& file, std::uint64_t offset, void* to, std::size_t bytes) {
  const ssize_t got = pread(file.fd(), to, bytes, static_cast<off_t>(offset));
  return got < 0 ? 0 : static_cast<std::size_t>(got);
}

void write_descriptor_path(const File& file, char* path, std::size_t bytes) {
  std::snprintf(path, bytes, "/proc/self/fd/%d", file.fd());
}

void read_link(const char* link, std::span<char> path) {
  const ssize_t length = readlink(link, path.data(), path.size() - 1);
  path[length > 0 ? static_cast<std::size_t>(length) : 0] = '\0';
}

void read_path(int fd, std::span<char> path) {
  char link[40];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  read_link(link, path);
}

void read_file_name(int fd, char* name, std::size_t bytes) {
  char path[PATH_MAX];
  name[0] = '\0';
  read_path(fd, path);
  const std::size_t length = std::strlen(path);
  constexpr char deleted[] = " (deleted)";
  constexpr std::size_t deleted_bytes = sizeof deleted - 1;
  if (length > deleted_bytes && std::strcmp(path + length - deleted_bytes, deleted) == 0)
    path[length - deleted_bytes] = '\0';
  const char* slash = std::strrchr(path, '/');
  const char* last = slash != nullptr ? slash + 1 : path;
  if (std::strlen(last) < bytes) std::strcpy(name, last);
}

Result<File> create_new(const char* path) {
  if (is_directory(path)) {
    errno = EISDIR;
    return path_error("write to", path);
  }
  const int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, owner_only);
  if (fd < 0) return path_error("create", path);
  return File(fd);
}

Result<File> open_existing(const char* path, bool direct) {
  const int fd = open(path, O_RDWR | O_CLOEXEC | (direct ? O_DIRECT : 0));
  if (fd >= 0) return File(fd);
  if (direct && errno == EINVAL) {
    Error error = Error::make(Errc::unsupported, "the file system of %s has no O_DIRECT", path);
    return error.try_next("use a path on a disk file system such as ext4 or xfs");
  }
  return path_error("open", path);
}

bool write_whole(int fd, const void* data, std::size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t wrote = ::write(fd, from, bytes);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    from += wrote;
    bytes -= static_cast<std::size_t>(wrote);
  }
  return true;
}

Result<File> open_readonly(const char* path) {
  File file(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.fd() < 0) {
    Error error = path_error("open", path);
    if (error.code == Errc::no_permission) error.try_next("run as a user who may read it");
    return error;
  }
  struct stat s {};
  if (fstat(file.fd(), &s) == 0 && S_ISREG(s.st_mode)) return file;
  return Error::make(Errc::bad_input, "%s is %s", path,
                     S_ISDIR(s.st_mode) ? "a directory" : "not a regular file")
      .try_next("name a file");
}

bool is_at(const File& file, const char* path) {
  struct stat opened, named;
  return fstat(file.fd(), &opened) == 0 && stat(path, &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

Result<std::size_t> file_size(const File& file) {
  struct stat s {};
  if (fstat(file.fd(), &s) == 0) return static_cast<std::size_t>(s.st_size);
  return Error::make(Errc::os_error, "cannot read the size of the file: %s", std::strerror(errno));
}

Status claim_alone(const File& file, const char* path) {
  const bool locked = flock(file.fd(), LOCK_EX | LOCK_NB) == 0;
  // A mapping keeps a file open for the kernel after its descriptor is closed: a lease sees it. It
  // is given up at once; a process that opens the file later meets the lock.
  const bool leased = locked && fcntl(file.fd(), F_SETLEASE, F_WRLCK) == 0;
  const int code = errno;
  if (leased) fcntl(file.fd(), F_SETLEASE, F_UNLCK);
  if (leased || (locked && code != EAGAIN)) return Done{}; // no leases here, or not for this user
  Error error = Error::make(Errc::no_permission, "%s is in use by another process", path);
  error.os_errno = EWOULDBLOCK;
  return error.try_next("end the program that uses it (fuser -v %s names it)", path);
}

BlockReuse block_reuse(const File& file) {
  struct Known {
    long magic;
    const char* name;
    bool copies_on_write;
    bool in_memory;
  };
  static constexpr Known known[] = {
      {EXT4_SUPER_MAGIC, "ext4", false, false},  {XFS_SUPER_MAGIC, "xfs", true, false},
      {BTRFS_SUPER_MAGIC, "btrfs", true, false}, {0x2fc12fc1, "zfs", true, false},
      {F2FS_SUPER_MAGIC, "f2fs", true, false},   {0xca451a4e, "bcachefs", true, false},
      {TMPFS_MAGIC, "tmpfs", false, true},       {RAMFS_MAGIC, "ramfs", false, true},
      {NFS_SUPER_MAGIC, "nfs", true, false},     {OVERLAYFS_SUPER_MAGIC, "overlay", true, false},
  };
  BlockReuse reuse{"", true, false};
  struct statfs s {};
  if (fstatfs(file.fd(), &s) != 0) return reuse;
  std::snprintf(reuse.name, sizeof reuse.name, "%#lx", static_cast<unsigned long>(s.f_type));
  for (const Known& one : known) {
    if (s.f_type != one.magic) continue;
    std::snprintf(reuse.name, sizeof reuse.name, "%s", one.name);
    reuse.copies_on_write = one.copies_on_write;
    reuse.in_memory = one.in_memory;
  }
  return reuse;
}

static Error lock_error(int code) {
  Error error = Error::make(classify(code), "a range of the device cannot be claimed: %s",
                            std::strerror(code));
  error.os_errno = code;
  return error.try_next("see that the device may be written, and that locks work on it");
}

// Locks of an open file description: two descriptors of one process exclude each other as two
// processes do, and the kernel drops them with the descriptor, even after kill -9.
Result<std::size_t> claim_range(const File& file, std::size_t bytes, std::size_t unit,
                                std::size_t total) {
  std::size_t offset = 0;
  while (offset + bytes <= total) {
    struct flock wanted {};
    wanted.l_type = F_WRLCK;
    wanted.l_whence = SEEK_SET;
    wanted.l_start = static_cast<off_t>(offset);
    wanted.l_len = static_cast<off_t>(bytes);
    if (fcntl(file.fd(), F_OFD_SETLK, &wanted) == 0) return offset;
    if (errno != EAGAIN && errno != EACCES) return lock_error(errno);
    if (fcntl(file.fd(), F_OFD_GETLK, &wanted) != 0) return lock_error(errno);
    if (wanted.l_type == F_UNLCK) continue; // given back in between
    const auto end = static_cast<std::size_t>(wanted.l_start + wanted.l_len);
    offset = (end + unit - 1) / unit * unit;
  }
  return Error::make(Errc::no_space, "%zu bytes in one piece are not free: others hold them", bytes)
      .try_next("ask for a smaller --size, or wait until the others have ended");
}

Status reserve_space(const File& file, std::size_t bytes) {
  const int code = posix_fallocate(file.fd(), 0, static_cast<off_t>(bytes));
  if (code == 0) return Done{};
  Error error =
      Error::make(classify(code), "cannot reserve %zu bytes: %s", bytes, std::strerror(code));
  error.os_errno = code;
  return error.try_next("ask for a smaller --size, or name a path with more room");
}

int reserve_part(int fd, std::uint64_t offset, std::uint64_t bytes) {
  return posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes));
}

int set_file_size(int fd, std::uint64_t bytes) {
  return ftruncate(fd, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
}

Result<std::size_t> free_space(const char* path) {
  struct statvfs s {};
  if (statvfs(path, &s) != 0) return path_error("look at", path);
  return static_cast<std::size_t>(s.f_bavail) * s.f_frsize;
}

Status check_directory(const char* path) {
  if (is_directory(path)) return Done{};
  struct stat s {};
  const bool exists = lstat(path, &s) == 0;
  errno = exists ? EEXIST : ENOENT;
  return path_error(exists ? "create" : "create a file in", path);
}

Status check_place(const char* path) {
  if (is_directory(path)) return Done{};
  struct stat s {};
  if (lstat(path, &s) == 0) {
    errno = EEXIST;
    return path_error("create", path);
  }
  char parent[PATH_MAX];
  std::snprintf(parent, sizeof parent, "%s", path);
  char* slash = std::strrchr(parent, '/');
  if (slash == nullptr) return Done{}; // in the current directory
  slash[slash == parent ? 1 : 0] = '\0';
  if (is_directory(parent)) return Done{};
  errno = ENOENT;
  return path_error("create a file in", parent);
}

Status check_memory_directory(const char* path) {
  if (!is_directory(path)) {
    errno = ENOENT;
    return path_error("use", path);
  }
  struct statfs s {};
  const bool in_memory =
      statfs(path, &s) == 0 && (s.f_type == TMPFS_MAGIC || s.f_type == RAMFS_MAGIC);
  if (in_memory) return Done{};
  return Error::make(Errc::bad_input, "%s is not a tmpfs: it cannot emulate persistent memory",
                     path)
      .try_next("use shm: for /dev/shm, or file:%s for the disk", path);
}

namespace {

/// Bytes of the file that the page cache holds, by mincore.
Result<std::size_t> cached_bytes(const File& file, std::size_t bytes) {
  constexpr std::size_t page = 4096;
  void* range = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.fd(), 0);
  if (range == MAP_FAILED)
    return Error::make(Errc::os_error, "cannot map the file: %s", std::strerror(errno));
  std::size_t cached = 0;
  constexpr std::size_t step = 4096; // pages looked at in one call
  unsigned char resident[step];
  for (std::size_t at = 0; at < bytes; at += step * page) {
    const std::size_t length = std::min(step * page, bytes - at);
    if (mincore(static_cast<char*>(range) + at, length, resident) != 0) break;
    for (std::size_t i = 0; i < (length + page - 1) / page; ++i)
      cached += (resident[i] & 1u) != 0 ? page : 0;
  }
  munmap(range, bytes);
  return cached;
}

} // namespace

Status drop_page_cache(const File& file, std::size_t bytes) {
  if (fdatasync(file.fd()) != 0 || posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED) != 0)
    return Error::make(Errc::os_error, "cannot empty the page cache of the file: %s",
                       std::strerror(errno));
  Result<std::size_t> cached = cached_bytes(file, bytes);
  if (!cached) return cached.error();
  if (*cached <= bytes / 100) return Done{}; // a few pages may be under read-ahead or write-back
  return Error::make(Errc::unsupported, "the page cache keeps %zu of the file's %zu bytes", *cached,
                     bytes)
      .try_next("a file system that lives in memory has no cold reads: name a path on a disk");
}

bool is_dax(const File& file) {
  struct statx s {};
  return statx(file.fd(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &s) == 0 &&
         (s.stx_attributes & STATX_ATTR_DAX) != 0;
}

int identify(const char* path, FileIdentity& identity) {
  struct stat found {};
  if (stat(path, &found) != 0) return errno;
  identity = {found.st_dev, found.st_ino};
  return 0;
}

} // namespace nearfar::os
