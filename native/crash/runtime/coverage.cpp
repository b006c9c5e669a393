#include "crash/runtime/coverage.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crash/runtime/judging.hpp"
#include "crash/runtime/kernel.hpp"
#include "crash/runtime/locks.hpp"

namespace nearfar::crash::runtime {

namespace {

using os::page_bytes;
constexpr std::uint64_t word_bytes = 4;
constexpr std::uint64_t most_pages = 4096;

std::uint64_t pool_bytes = 0;
std::uint64_t stride = page_bytes; ///< from one page that is compared to the next, a power of 2
unsigned stride_bits = 12;
bool is_in_memory = false;     ///< the file is in tmpfs
char* kept = nullptr;          ///< these pages, one after another
bool* is_of_program = nullptr; ///< by line
bool is_libpmemobj = false;    ///< the pool

/// Whether a part of a page was never stored to, if that is known: there, a look would take space, which
/// a file system may not have.
bool is_hole(const char* at, std::uint64_t bytes) {
  unsigned char is_there = 1;
  const std::uint64_t into = reinterpret_cast<std::uintptr_t>(at) % page_bytes;
  return is_in_memory && system_call(SYS_mincore, at - into, into + bytes, &is_there) == 0 &&
         (is_there & 1) == 0;
}

/// Calls visit(offset, bytes as they were seen, as they are now, their number) for what of a range lies in
/// pages that are compared. `shadow` is that of the whole pool, or null.
template <class Visit>
void for_each_compared(std::uint64_t offset, std::uint64_t bytes, const char* now, char* shadow,
                       const Visit& visit) {
  const std::uint64_t end = std::min(offset + bytes, pool_bytes);
  for (std::uint64_t at = offset; at < end;) {
    const std::uint64_t into = at & (stride - 1);
    if (into >= page_bytes) {
      at += stride - into;
      continue;
    }
    const std::uint64_t part = std::min(page_bytes - into, end - at);
    visit(at, shadow != nullptr ? shadow + at : kept + (at >> stride_bits) * page_bytes + into,
          now + (at - offset), part);
    at += part;
  }
}

/// Most stores have 8 bytes: a call of memcpy(), which the recorder has replaced, takes longer.
void copy_seen(char* then, const char* now, std::uint64_t bytes) {
  if (bytes == 8)
    __builtin_memcpy(then, now, 8);
  else
    std::memcpy(then, now, bytes);
}

/// Counts what differs, once. What libpmemobj keeps in lines of its own is not counted.
std::uint64_t take_unseen(std::uint64_t offset, char* then, const char* now, std::uint64_t size) {
  if (std::memcmp(then, now, size) == 0) return 0;
  std::uint64_t bytes = 0;
  for (std::uint64_t at = 0; at < size; at += word_bytes)
    if (std::memcmp(then + at, now + at, std::min(word_bytes, size - at)) != 0 &&
        (!is_libpmemobj || is_of_program == nullptr ||
         is_of_program[(offset + at) / storelog::line_bytes]))
      bytes += word_bytes;
  std::memcpy(then, now, size);
  return bytes;
}

/// Memory that takes space where it is stored to; null if there is none.
void* reserve(std::uint64_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

} // namespace

bool begin_coverage(int fd, std::uint64_t bytes) {
  struct statfs system {};
  is_in_memory = fstatfs(fd, &system) == 0 && system.f_type == TMPFS_MAGIC;
  const std::uint64_t pages = (bytes + page_bytes - 1) / page_bytes; // the last one may be a part
  pool_bytes = bytes;
  stride = std::bit_ceil((pages + most_pages - 1) / most_pages) * page_bytes;
  stride_bits = static_cast<unsigned>(std::countr_zero(stride));
  if (pool_bytes == 0 || seen == Seen::faults) return true;
  is_of_program = static_cast<bool*>(reserve(pool_bytes / storelog::line_bytes + 1));
  if (is_of_program == nullptr) return false;
  if (judge() == nullptr) return keep_file(fd);
  kept = static_cast<char*>(reserve(most_pages * page_bytes));
  if (kept != nullptr)
    madvise(kept, most_pages * page_bytes, MADV_HUGEPAGE); // stores come anywhere
  return kept != nullptr && keep_file(fd);
}

bool keep_file(int fd) {
  char signature[8] = "";
  if (pread(fd, signature, sizeof signature, 0) < 0) return false;
  is_libpmemobj = std::memcmp(signature, "PMEMOBJ", sizeof signature) == 0;
  if (kept == nullptr) return true;
  for (std::uint64_t at = 0; at < pool_bytes; at += stride)
    if (pread(fd, kept + (at >> stride_bits) * page_bytes, page_bytes, static_cast<off_t>(at)) < 0)
      return false;
  return true;
}

void keep_seen(std::uint64_t offset, std::size_t bytes, const char* now) {
  if (kept == nullptr) return;
  for_each_compared(offset, bytes, now, nullptr,
                    [](std::uint64_t, char* then, const char* is, std::uint64_t size) {
                      copy_seen(then, is, size);
                    });
}

void expect_store(std::uint64_t offset) {
  if (kept == nullptr || (offset & (stride - 1)) >= page_bytes) return;
  __builtin_prefetch(kept + (offset >> stride_bits) * page_bytes + offset % page_bytes, 1);
}

bool has_own_parts() { return is_libpmemobj; }

void mark_as_of_program(std::uint64_t offset, std::size_t bytes) {
  if (!is_libpmemobj || is_of_program == nullptr) return;
  const std::uint64_t end = std::min(offset + bytes, pool_bytes);
  for (std::uint64_t at = offset / storelog::line_bytes * storelog::line_bytes; at < end;
       at += storelog::line_bytes)
    is_of_program[at / storelog::line_bytes] = true;
}

std::uint64_t count_unseen(std::uint64_t offset, std::size_t bytes, const char* now) {
  std::uint64_t unseen = 0;
  if (kept == nullptr) return 0;
  const auto count = [&](std::uint64_t at, char* then, const char* is, std::uint64_t size) {
    unseen += take_unseen(at, then, is, size);
  };
  for_each_compared(offset, bytes, now, nullptr, count);
  return unseen;
}

std::uint64_t count_unseen(const RecordedRegion& region, char* shadow) {
  if (pool_bytes == 0) return 0;
  for_each_lock(region.offset, region.bytes, [&](std::uint64_t offset, std::uint64_t size) {
    for_each_compared(offset, size, region.alias + (offset - region.offset), shadow,
                      [](std::uint64_t, char* then, const char* now, std::uint64_t part) {
                        std::memcpy(then, now, part);
                      });
  });
  std::uint64_t bytes = 0;
  const auto count = [&](std::uint64_t at, char* then, const char* now, std::uint64_t part) {
    if (!is_hole(now, part)) bytes += take_unseen(at, then, now, part);
  };
  for_each_compared(region.offset, region.bytes, region.alias, shadow, count);
  return bytes;
}

} // namespace nearfar::crash::runtime
