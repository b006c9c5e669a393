#include "os/process_pages.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/address_space.hpp"

namespace nearfar::os {

namespace {

constexpr std::size_t batch_pages = 1024;
// linux/mempolicy.h
constexpr int flag_move = 2, flag_move_all = 4;
/// Status of a page that the kernel has not written.
constexpr int pending = INT_MIN;

// linux/fs.h of Linux 6.7, which older headers lack.
struct PageRegion {
  std::uint64_t start, end, categories;
};
struct ScanArgument {
  std::uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages, category_inverted,
      category_mask, category_anyof_mask, return_mask;
};
constexpr unsigned long scan_request = _IOWR('f', 16, ScanArgument);
constexpr std::uint64_t page_is_present = 1u << 3, page_is_swapped = 1u << 4;
// Documentation/admin-guide/mm/pagemap.rst
constexpr std::uint64_t present_bit = std::uint64_t{1} << 63, swapped_bit = std::uint64_t{1} << 62;

void append(std::vector<PageRun>& runs, std::uint64_t address, std::uint64_t pages, int node) {
  if (!runs.empty()) {
    PageRun& last = runs.back();
    if (last.node == node && last.address + last.pages * page_bytes == address) {
      last.pages += pages;
      return;
    }
  }
  runs.push_back({address, pages, node});
}

/// The addresses of one system call.
struct Batch {
  std::array<std::uint64_t, batch_pages> addresses;
  std::array<int, batch_pages> statuses;
  std::array<int, batch_pages> nodes;
  std::size_t count = 0;
};

/// Calls `use` for the pages of all runs, a batch at a time.
template <class Use>
Status for_each_batch(std::span<const PageRun> runs, const Use& use) {
  Batch batch;
  for (const PageRun& run : runs) {
    for (std::uint64_t page = 0; page < run.pages; ++page) {
      batch.addresses[batch.count++] = run.address + page * page_bytes;
      if (batch.count < batch_pages) continue;
      if (Status s = use(batch); !s) return s.error();
      batch.count = 0;
    }
  }
  return batch.count == 0 ? Status(Done{}) : use(batch);
}

/// Next step for the permission to move pages of another process.
const char* how_to_be_permitted() {
  return geteuid() == 0
             ? "add CAP_SYS_PTRACE and CAP_SYS_NICE to this container, or choose another "
               "process: the kernel protects some from root, too"
             : "run it as the same user, or with CAP_SYS_NICE and CAP_SYS_PTRACE: sudo";
}

Error explain(pid_t process, int code, int node) {
  Error error;
  if (code == ESRCH) {
    error = Error::make(Errc::not_found, "process %d has ended", process);
  } else if (code == EPERM) {
    error = Error::make(Errc::no_permission, "the pages of process %d cannot be moved: %s", process,
                        std::strerror(code));
    error.try_next("%s; in a container the seccomp profile must permit move_pages",
                   how_to_be_permitted());
  } else if (code == EACCES) {
    error = Error::make(Errc::unsupported, "process %d may not use node %d", process, node);
    error.try_next("add the node to cpuset.mems of its control group");
  } else if (code == ENODEV) {
    error = Error::make(Errc::unsupported, "this machine has no memory on NUMA node %d", node);
    error.try_next("`nearfar topo` lists the nodes that exist");
  } else if (code == ENOSYS) {
    error = Error::make(Errc::unsupported, "this kernel cannot move pages between nodes");
    error.try_next("use a kernel that is built with CONFIG_NUMA and CONFIG_MIGRATION");
  } else {
    error = Error::make(Errc::os_error, "move_pages of process %d failed: %s", process,
                        std::strerror(code));
  }
  error.os_errno = code;
  return error;
}

long move_pages_of(pid_t process, Batch& batch, std::size_t first, std::size_t count,
                   const int* nodes, int flags) {
  return syscall(SYS_move_pages, process, count, batch.addresses.data() + first, nodes,
                 batch.statuses.data() + first, flags);
}

Status locate_batch(pid_t process, Batch& batch) {
  if (move_pages_of(process, batch, 0, batch.count, nullptr, 0) == 0) return Done{};
  return explain(process, errno, -1);
}

/// Moves the pages of a batch; each gets a status. The kernel stops at a page that does not move
/// and does not report which one it was, so that the rest is retried in smaller batches. Pages that
/// have moved by then are answered at once.
Status move_batch(pid_t process, Batch& batch, int node, int flags) {
  std::fill_n(batch.nodes.begin(), batch.count, node);
  std::fill_n(batch.statuses.begin(), batch.count, pending);
  std::size_t size = batch.count;
  for (std::size_t first = 0; first < batch.count;) {
    const std::size_t count = std::min(size, batch.count - first);
    const long done = move_pages_of(process, batch, first, count, batch.nodes.data(), flags);
    const int code = done < 0 ? errno : 0;
    if (code != 0 && code != ENOMEM) return explain(process, code, node);
    if (done == 0) {
      first += count;
      size = std::min(2 * count, batch_pages);
    } else if (count > 1) {
      size = std::max<std::size_t>(count / 8, 1);
    } else if (code == ENOMEM) { // the node is full: no page of the batch moves any more
      std::fill_n(batch.statuses.begin() + static_cast<std::ptrdiff_t>(first), batch.count - first,
                  -ENOMEM);
      return Done{};
    } else {
      batch.statuses[first++] = -EBUSY;
    }
  }
  return Done{};
}

/// Replaces an error by the node for a page that moved with others: of a large page, all but the
/// first are reported as busy.
Status correct_statuses(pid_t process, Batch& batch, int node) {
  const std::array<int, batch_pages> reported = batch.statuses;
  if (Status s = locate_batch(process, batch); !s) return s.error();
  for (std::size_t i = 0; i < batch.count; ++i)
    if (batch.statuses[i] >= 0 && batch.statuses[i] != node)
      batch.statuses[i] = reported[i] < 0 && reported[i] != pending ? reported[i] : -EBUSY;
  return Done{};
}

} // namespace

Result<ProcessPages> ProcessPages::open(pid_t process, PageSearch search) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/pagemap", process);
  ProcessPages pages;
  pages.process_ = process;
  pages.map_ = File(::open(path, O_RDONLY | O_CLOEXEC));
  if (pages.map_.fd() < 0) {
    if (errno == ENOENT || errno == ESRCH)
      return Error::make(Errc::not_found, "no process %d", process)
          .try_next("list processes with `ps -e`");
    Error error = Error::make(Errc::no_permission, "process %d cannot be inspected: %s", process,
                              std::strerror(errno));
    error.os_errno = errno;
    return error.try_next("%s", how_to_be_permitted());
  }
  ScanArgument nothing{};
  nothing.size = sizeof nothing;
  nothing.category_mask = nothing.return_mask = page_is_present;
  pages.has_scan_ =
      search == PageSearch::by_range && ioctl(pages.map_.fd(), scan_request, &nothing) >= 0;
  return pages;
}

bool ProcessPages::is_current() const {
  std::uint64_t entry = 0; // of address 0; nothing can be read once the address space is gone
  return pread(map_.fd(), &entry, sizeof entry, 0) == sizeof entry;
}

Result<LocatedPages> ProcessPages::locate(std::uint64_t from, std::uint64_t to,
                                          std::uint64_t max_pages) const {
  LocatedPages present = search(from, to, max_pages, false);
  LocatedPages found;
  found.end = present.end;
  Status done = for_each_batch(present.runs, [&](Batch& batch) -> Status {
    if (Status s = locate_batch(process_, batch); !s) return s.error();
    for (std::size_t i = 0; i < batch.count; ++i)
      if (batch.statuses[i] != -ENOENT)
        append(found.runs, batch.addresses[i], 1, batch.statuses[i]);
    return Done{};
  });
  if (!done) return done.error();
  return found;
}

LocatedPages ProcessPages::held(std::uint64_t from, std::uint64_t to,
                                std::uint64_t max_pages) const {
  return search(from, to, max_pages, true);
}

Result<std::vector<PageRun>> ProcessPages::move(std::span<const PageRun> runs, int node,
                                                bool shared) const {
  std::vector<PageRun> moved;
  Status done = for_each_batch(runs, [&](Batch& batch) -> Status {
    if (Status s = move_batch(process_, batch, node, shared ? flag_move_all : flag_move); !s)
      return s.error();
    if (Status s = correct_statuses(process_, batch, node); !s) return s.error();
    for (std::size_t i = 0; i < batch.count; ++i)
      append(moved, batch.addresses[i], 1, batch.statuses[i]);
    return Done{};
  });
  if (!done) return done.error();
  return moved;
}

LocatedPages ProcessPages::search(std::uint64_t from, std::uint64_t to, std::uint64_t max_pages,
                                  bool swapped) const {
  from = from / page_bytes * page_bytes;
  to = (to + page_bytes - 1) / page_bytes * page_bytes;
  return has_scan_ ? scan_ranges(from, to, max_pages, swapped)
                   : read_pages(from, to, max_pages, swapped);
}

LocatedPages ProcessPages::scan_ranges(std::uint64_t from, std::uint64_t to,
                                       std::uint64_t max_pages, bool swapped) const {
  std::array<PageRegion, 256> regions;
  LocatedPages found;
  for (std::uint64_t left = max_pages; from < to && left > 0;) {
    ScanArgument wanted{};
    wanted.size = sizeof wanted;
    wanted.start = from;
    wanted.end = to;
    wanted.vec = reinterpret_cast<std::uintptr_t>(regions.data());
    wanted.vec_len = regions.size();
    wanted.max_pages = left;
    wanted.category_anyof_mask = page_is_present | (swapped ? page_is_swapped : 0);
    wanted.return_mask = wanted.category_anyof_mask;
    const int count = ioctl(map_.fd(), scan_request, &wanted);
    if (count < 0) break; // the address space is gone
    for (int i = 0; i < count; ++i) {
      const PageRegion& region = regions[static_cast<std::size_t>(i)];
      const std::uint64_t pages = (region.end - region.start) / page_bytes;
      append(found.runs, region.start, pages, 0);
      left -= std::min(left, pages);
    }
    if (wanted.walk_end <= from) break;
    from = wanted.walk_end;
    found.end = from;
    if (count == 0) break;
  }
  if (found.end == 0) found.end = to;
  return found;
}

LocatedPages ProcessPages::read_pages(std::uint64_t from, std::uint64_t to, std::uint64_t max_pages,
                                      bool swapped) const {
  const std::uint64_t wanted_bits = present_bit | (swapped ? swapped_bit : 0);
  constexpr std::uint64_t max_entries = std::uint64_t{1} << 20; // of absent pages: 4 GiB
  std::vector<std::uint64_t> entries(16 * batch_pages);
  LocatedPages found;
  const std::uint64_t last = std::min(to, from + max_entries * page_bytes);
  for (std::uint64_t left = max_pages; from < last && left > 0;) {
    const std::uint64_t pages = (last - from) / page_bytes;
    const std::size_t wanted = std::min<std::size_t>(entries.size(), pages) * sizeof entries[0];
    const ssize_t got = pread(map_.fd(), entries.data(), wanted,
                              static_cast<off_t>(from / page_bytes * sizeof entries[0]));
    if (got < static_cast<ssize_t>(sizeof entries[0])) { // ended, or behind the last address
      found.end = to;
      return found;
    }
    const std::size_t count = static_cast<std::size_t>(got) / sizeof entries[0];
    for (std::size_t i = 0; i < count && left > 0; ++i, from += page_bytes)
      if ((entries[i] & wanted_bits) != 0) {
        append(found.runs, from, 1, 0);
        --left;
      }
  }
  found.end = from;
  return found;
}

} // namespace nearfar::os
