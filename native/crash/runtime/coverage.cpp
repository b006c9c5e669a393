#include "crash/runtime/coverage.hpp"

#include <algorithm>
#include <cstring>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crash/runtime/judging.hpp"
#include "crash/runtime/kernel.hpp"
#include "crash/runtime/libpmemobj.hpp"
#include "crash/runtime/locks.hpp"

namespace nearfar::crash::runtime {

namespace {

constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint64_t word_bytes = 4;
constexpr std::uint64_t most_pages = 4096;

std::uint64_t pool_bytes = 0;
std::uint64_t stride = page_bytes; ///< from one page that is compared to the next
bool is_in_memory = false;         ///< the file is in tmpfs
char* kept = nullptr;              ///< these pages, one after another

/// libpmemobj stores without callbacks, too.
bool is_counted() { return seen == Seen::faults || !has_libpmemobj(); }

/// Whether a page was never stored to, if that is known: there, a look would take space, which a file
/// system may not have.
bool is_hole(const char* page, std::uint64_t bytes) {
  unsigned char is_there = 1;
  return is_in_memory && system_call(SYS_mincore, page, bytes, &is_there) == 0 &&
         (is_there & 1) == 0;
}

std::uint64_t unseen_in(const char* then, const char* now, std::uint64_t size) {
  if (std::memcmp(then, now, size) == 0) return 0;
  std::uint64_t bytes = 0;
  for (std::uint64_t at = 0; at < size; at += word_bytes)
    if (std::memcmp(then + at, now + at, std::min(word_bytes, size - at)) != 0) bytes += word_bytes;
  return bytes;
}

} // namespace

bool begin_coverage(int fd, std::uint64_t bytes) {
  struct statfs system {};
  is_in_memory = fstatfs(fd, &system) == 0 && system.f_type == TMPFS_MAGIC;
  const std::uint64_t pages = (bytes + page_bytes - 1) / page_bytes; // the last one may be a part
  pool_bytes = bytes;
  stride = (pages + most_pages - 1) / most_pages * page_bytes;
  if (judge() == nullptr || pool_bytes == 0 || seen == Seen::faults || !is_counted()) return true;
  void* const memory = mmap(nullptr, most_pages * page_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  kept = static_cast<char*>(memory);
  for (std::uint64_t at = 0; at < pool_bytes; at += stride)
    if (pread(fd, kept + at / stride * page_bytes, page_bytes, static_cast<off_t>(at)) < 0)
      return false;
  return true;
}

void keep_seen(std::uint64_t offset, std::size_t bytes, const char* now) {
  if (kept == nullptr) return;
  const std::uint64_t end = std::min(offset + bytes, pool_bytes);
  while (offset < end) {
    const std::uint64_t page_end = std::min((offset / page_bytes + 1) * page_bytes, end);
    const std::uint64_t part = page_end - offset;
    if (offset / page_bytes * page_bytes % stride == 0)
      std::memcpy(kept + offset / stride * page_bytes + offset % page_bytes, now, part);
    offset += part;
    now += part;
  }
}

std::uint64_t count_unseen(const RecordedRegion& region, char* shadow) {
  if (pool_bytes == 0 || !is_counted()) return 0;
  const std::uint64_t end = std::min(region.offset + region.bytes, pool_bytes);
  for_each_lock(region.offset, end - region.offset, [&](std::uint64_t offset, std::uint64_t size) {
    const char* const now = region.alias + (offset - region.offset);
    if (kept == nullptr)
      std::memcpy(shadow + offset, now, size);
    else
      keep_seen(offset, size, now);
  });
  std::uint64_t bytes = 0;
  for (std::uint64_t at = (region.offset + stride - 1) / stride * stride; at < end; at += stride) {
    const std::uint64_t size = std::min(page_bytes, end - at);
    char* const then = kept == nullptr ? shadow + at : kept + at / stride * page_bytes;
    const char* const now = region.alias + (at - region.offset);
    if (is_hole(now, size)) continue;
    bytes += unseen_in(then, now, size);
    std::memcpy(then, now, size); // counted once
  }
  return bytes;
}

} // namespace nearfar::crash::runtime
