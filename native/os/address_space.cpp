#include "os/address_space.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include "os/process.hpp"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace nearfar::os {

namespace {

int map_at(std::byte* at, std::size_t bytes, int protection, int flags, int fd, off_t offset,
           Place place) {
  flags |= place == Place::fresh ? MAP_FIXED_NOREPLACE : MAP_FIXED;
  void* got = mmap(at, bytes, protection, flags, fd, offset);
  if (got == MAP_FAILED) return errno;
  if (got == at) return 0;
  munmap(got, bytes); // a kernel before 4.17 takes the address as a hint
  return EEXIST;
}

int advise(std::byte* at, std::size_t bytes, int advice) {
  return madvise(at, bytes, advice) == 0 ? 0 : errno;
}

/// start_brk, the 47th field of /proc/self/stat (proc(5)); 0 if it cannot be read.
std::uintptr_t first_break() {
  char text[1024];
  if (!read_text("/proc/self/stat", text, sizeof text)) return 0;
  const char* at = std::strrchr(text, ')'); // ends the second field, a name
  for (int field = 2; at != nullptr && field < 47; ++field)
    at = std::strchr(at + 1, ' ');
  return at == nullptr ? 0 : std::strtoull(at, nullptr, 10);
}

} // namespace

std::byte* reserve_space_at(std::size_t bytes, std::size_t alignment) {
  void* got = mmap(nullptr, bytes + alignment, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) return nullptr;
  auto* whole = static_cast<std::byte*>(got);
  const auto address = reinterpret_cast<std::uintptr_t>(whole);
  const std::size_t before = (alignment - address % alignment) % alignment;
  if (before > 0) munmap(whole, before);
  if (alignment > before) munmap(whole + before + bytes, alignment - before);
  return whole + before;
}

int reserve_fixed(std::byte* at, std::size_t bytes) {
  return map_at(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0,
                Place::replace);
}

std::byte* map_anonymous(std::size_t bytes) {
  void* got = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return got == MAP_FAILED ? nullptr : static_cast<std::byte*>(got);
}

std::byte* map_readable(std::size_t bytes) {
  void* got = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return got == MAP_FAILED ? nullptr : static_cast<std::byte*>(got);
}

int make_writable(const void* from, const void* to) {
  const auto begin = reinterpret_cast<std::uintptr_t>(from) / page_bytes * page_bytes;
  const auto end =
      (reinterpret_cast<std::uintptr_t>(to) + page_bytes - 1) / page_bytes * page_bytes;
  return protect(reinterpret_cast<std::byte*>(begin), end - begin, Access::read_write);
}

void unmap(std::byte* at, std::size_t bytes) { munmap(at, bytes); }

int map_anonymous_at(std::byte* at, std::size_t bytes, Place place, bool charged) {
  return map_at(at, bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | (charged ? 0 : MAP_NORESERVE), -1, 0, place);
}

int map_file_at(std::byte* at, std::size_t bytes, int fd, std::uint64_t offset, bool sync,
                Place place) {
  return map_at(at, bytes, PROT_READ | PROT_WRITE,
                sync ? MAP_SHARED_VALIDATE | MAP_SYNC : MAP_SHARED, fd, static_cast<off_t>(offset),
                place);
}

int map_again_at(std::byte* from, std::byte* at, std::size_t bytes) {
  // An old size of 0 leaves the first mapping where it is (mremap(2)).
  void* got = mremap(from, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at);
  return got == MAP_FAILED ? errno : 0;
}

int move_mapping(std::byte* from, std::byte* to, std::size_t bytes) {
  void* got = mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to);
  return got == MAP_FAILED ? errno : 0;
}

int protect(std::byte* at, std::size_t bytes, Access access) {
  const int protection = access == Access::none ? PROT_NONE : PROT_READ | PROT_WRITE;
  return mprotect(at, bytes, protection) == 0 ? 0 : errno;
}

int discard(std::byte* at, std::size_t bytes) { return advise(at, bytes, MADV_DONTNEED); }
int punch(std::byte* at, std::size_t bytes) { return advise(at, bytes, MADV_REMOVE); }
int populate(std::byte* at, std::size_t bytes) { return advise(at, bytes, MADV_POPULATE_WRITE); }
int dont_fork(std::byte* at, std::size_t bytes) { return advise(at, bytes, MADV_DONTFORK); }
int advise_huge(std::byte* at, std::size_t bytes, bool huge) {
  return advise(at, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

Read try_read(const void* from, void* to, std::size_t bytes) {
  const iovec here{to, bytes};
  const iovec there{const_cast<void*>(from), bytes};
  const int code = errno;
  const ssize_t got = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
  const bool refused = got < 0 && errno != EFAULT;
  errno = code;
  if (refused) return Read::refused;
  return got >= 0 && static_cast<std::size_t>(got) == bytes ? Read::done : Read::absent;
}

Area program_break() {
  static std::atomic<std::uintptr_t> begin{0}; // never moves
  if (begin.load(std::memory_order_relaxed) == 0) begin.store(first_break());
  const std::uintptr_t first = begin.load(std::memory_order_relaxed);
  if (first == 0) return {};
  return {first, reinterpret_cast<std::uintptr_t>(sbrk(0))};
}

std::size_t address_space_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  return limit.rlim_cur;
}

bool strict_overcommit() {
  const int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char mode = '0';
  const bool read_one = read(fd, &mode, 1) == 1;
  close(fd);
  return read_one && mode == '2';
}

} // namespace nearfar::os
