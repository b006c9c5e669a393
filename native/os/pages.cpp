#include "os/pages.hpp"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/random.hpp"
#include "os/process.hpp"

// libnuma is not used: only one of its system calls is required, and libhmalloc may depend on libc
// only.
#ifndef MPOL_BIND
#define MPOL_BIND 2
#endif
#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26
#endif

namespace nearfar::os {

namespace {

constexpr std::size_t small_page = 4096;
constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t giant_page = std::size_t{1} << 30;
constexpr std::size_t most_pages_before = 256; ///< guard pages before a range of small pages

std::size_t alignment_of(PageSize pages, bool anonymous) {
  switch (pages) {
  case PageSize::huge_1g: return giant_page;
  case PageSize::huge_2m:
  case PageSize::transparent_huge: return huge_page;
  case PageSize::system:
  case PageSize::small_4k: break;
  }
  return anonymous ? small_page : huge_page; // a DAX file is mapped by 2 MiB where it can be
}

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

int map_flags(PageSize pages, int fd, bool sync) {
  int flags = MAP_FIXED;
  const bool reserved_pages = pages == PageSize::huge_2m || pages == PageSize::huge_1g;
  if (fd >= 0)
    flags |= sync ? MAP_SHARED_VALIDATE | MAP_SYNC : MAP_SHARED;
  else // without a reservation, touching a huge page that is not there kills the process
    flags |= MAP_PRIVATE | MAP_ANONYMOUS | (reserved_pages ? 0 : MAP_NORESERVE);
  if (pages == PageSize::huge_2m) flags |= MAP_HUGETLB | (21 << MAP_HUGE_SHIFT);
  if (pages == PageSize::huge_1g) flags |= MAP_HUGETLB | (30 << MAP_HUGE_SHIFT);
  return flags;
}

Error explain_map_failure(int code, std::size_t bytes, PageSize pages, bool sync) {
  Error error;
  if (pages == PageSize::huge_2m || pages == PageSize::huge_1g) {
    const bool giant = pages == PageSize::huge_1g;
    const std::size_t unit = giant ? giant_page : huge_page;
    error = Error::make(Errc::unsupported, "no %s huge pages are free for %zu bytes",
                        giant ? "1 GiB" : "2 MiB", bytes);
    if (giant)
      error.try_next("boot with hugepagesz=1G hugepages=%zu, or use pages=thp",
                     round_up(bytes, unit) / unit);
    else
      error.try_next("sysctl vm.nr_hugepages=%zu, or use pages=thp", round_up(bytes, unit) / unit);
  } else if (sync && (code == EOPNOTSUPP || code == EINVAL)) {
    error =
        Error::make(Errc::unsupported, "the file system does not grant MAP_SYNC: it is not DAX");
    error.try_next("mount it with -o dax=always on a pmem device, or use file: or shm:");
  } else if (code == ENOMEM) {
    error = Error::make(Errc::no_space, "the kernel refused to map %zu bytes", bytes);
    error.try_next("ask for a smaller --size");
  } else {
    error = Error::make(code == EACCES || code == EPERM ? Errc::no_permission : Errc::os_error,
                        "mapping %zu bytes failed: %s", bytes, std::strerror(code));
  }
  error.os_errno = code;
  return error;
}

} // namespace

const char* page_size_name(PageSize pages) {
  switch (pages) {
  case PageSize::system: return "system";
  case PageSize::small_4k: return "4k";
  case PageSize::transparent_huge: return "thp";
  case PageSize::huge_2m: return "2m";
  case PageSize::huge_1g: return "1g";
  }
  return "system";
}

MappedRange::MappedRange(MappedRange&& other) noexcept { *this = std::move(other); }

MappedRange& MappedRange::operator=(MappedRange&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(reserved_, other.reserved_);
  std::swap(reserved_bytes_, other.reserved_bytes_);
  return *this;
}

MappedRange::~MappedRange() {
  if (reserved_ != nullptr) munmap(reserved_, reserved_bytes_);
}

Result<MappedRange> map_range(std::size_t bytes, PageSize pages, int fd, bool sync,
                              std::size_t offset) {
  const std::size_t align = alignment_of(pages, fd < 0);
  const std::size_t size = round_up(bytes, fd < 0 ? align : small_page);
  const std::size_t most = align == small_page ? most_pages_before : 1;
  const std::size_t before = (1 + Random(__builtin_ia32_rdtsc()).below(most)) * small_page;
  MappedRange range;
  range.reserved_bytes_ = size + align + (most + 1) * small_page;
  void* reserved = mmap(nullptr, range.reserved_bytes_, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return explain_map_failure(errno, bytes, PageSize::system, false);
  range.reserved_ = static_cast<std::byte*>(reserved);
  const auto first = round_up(reinterpret_cast<std::uintptr_t>(reserved) + before, align);
  void* data = mmap(reinterpret_cast<void*>(first), size, PROT_READ | PROT_WRITE,
                    map_flags(pages, fd, sync), fd, static_cast<off_t>(offset));
  if (data == MAP_FAILED) return explain_map_failure(errno, bytes, pages, sync);
  if (pages == PageSize::small_4k) madvise(data, size, MADV_NOHUGEPAGE);
  if (pages == PageSize::transparent_huge) madvise(data, size, MADV_HUGEPAGE);
  range.data_ = static_cast<std::byte*>(data);
  range.size_ = size;
  return range;
}

Status bind_to_node(const MappedRange& range, int node) {
  unsigned long mask[16] = {};
  constexpr int bits = static_cast<int>(sizeof mask) * 8;
  if (node >= 0 && node < bits - 1) {
    mask[node / 64] = 1ul << (node % 64);
    if (syscall(SYS_mbind, range.data(), range.size(), MPOL_BIND, mask, bits, 0) == 0)
      return Done{};
  } else {
    errno = EINVAL;
  }
  Error error = Error::make(Errc::unsupported, "this machine has no memory on NUMA node %d", node);
  error.os_errno = errno;
  return error.try_next("`nearfar topo` lists the nodes that exist");
}

void prefault(const MappedRange& range) {
  for (std::size_t i = 0; i < range.size(); i += small_page)
    *reinterpret_cast<volatile char*>(range.data() + i) = 0;
}

void touch(std::byte* data, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += small_page)
    __atomic_fetch_or(reinterpret_cast<unsigned char*>(data + i), 0, __ATOMIC_RELAXED);
}

Result<Residency> residency(const MappedRange& range) {
  std::FILE* smaps = std::fopen("/proc/self/smaps", "re");
  if (smaps == nullptr) return Error::make(Errc::os_error, "cannot read /proc/self/smaps");
  Residency found;
  bool inside = false;
  char line[512];
  while (std::fgets(line, sizeof line, smaps) != nullptr) {
    std::uintptr_t low = 0;
    std::uintptr_t high = 0;
    std::size_t kib = 0;
    char key[64];
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &low, &high) == 2) {
      inside = low == reinterpret_cast<std::uintptr_t>(range.data());
    } else if (inside && std::sscanf(line, "%63[^:]: %zu kB", key, &kib) == 2) {
      if (std::strcmp(key, "Rss") == 0) found.resident_bytes += kib << 10;
      if (std::strcmp(key, "KernelPageSize") == 0) found.kernel_page_bytes = kib << 10;
      if (std::strcmp(key, "AnonHugePages") == 0 || std::strcmp(key, "ShmemPmdMapped") == 0 ||
          std::strcmp(key, "FilePmdMapped") == 0)
        found.huge_bytes += kib << 10;
      if (std::strcmp(key, "Private_Hugetlb") == 0 || std::strcmp(key, "Shared_Hugetlb") == 0) {
        found.huge_bytes += kib << 10;
        found.resident_bytes += kib << 10; // reserved huge pages are not part of Rss
      }
    }
  }
  std::fclose(smaps);
  return found;
}

namespace {

// Without stdio: libhmalloc calls these with its locks held, while fork() takes stdio's lock first.

std::size_t read_number(const char* path, std::size_t otherwise) {
  char text[64];
  std::size_t value = 0;
  return read_text(path, text, sizeof text) && std::sscanf(text, "%zu", &value) == 1 ? value
                                                                                     : otherwise;
}

std::size_t meminfo_available() {
  char text[4096];
  if (!read_text("/proc/meminfo", text, sizeof text)) return 0;
  const char* line = std::strstr(text, "MemAvailable:");
  std::size_t kib = 0;
  return line != nullptr && std::sscanf(line, "MemAvailable: %zu kB", &kib) == 1 ? kib << 10 : 0;
}

std::size_t cgroup_room() {
  constexpr std::size_t unlimited = SIZE_MAX;
  struct Files {
    const char* limit;
    const char* used;
  };
  // cgroup 2 as a container sees it, then cgroup 1; an outer limit is not visible from inside.
  constexpr Files versions[] = {
      {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes",
       "/sys/fs/cgroup/memory/memory.usage_in_bytes"},
  };
  std::size_t room = unlimited;
  for (const Files& files : versions) {
    const std::size_t limit = read_number(files.limit, unlimited); // "max" is not a number
    const std::size_t used = read_number(files.used, 0);
    if (limit != unlimited) room = std::min(room, limit > used ? limit - used : 0);
  }
  return room;
}

} // namespace

std::size_t available_memory_bytes() { return std::min(meminfo_available(), cgroup_room()); }

Status sync_range(const std::byte* data, std::size_t bytes) {
  if (msync(const_cast<std::byte*>(data), bytes, MS_SYNC) == 0) return Done{};
  Error error = Error::make(errno == ENOSPC ? Errc::no_space : Errc::os_error, "msync failed: %s",
                            std::strerror(errno));
  error.os_errno = errno;
  return error;
}

} // namespace nearfar::os
