// Pages of another process: which are in memory, on which NUMA node, and moving them.
//
// Privileges     a process of the same user where ptrace is permitted, or CAP_SYS_NICE and
//                CAP_SYS_PTRACE.
// Thread safety  one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <sys/types.h>
#include <vector>

#include "base/result.hpp"
#include "os/file.hpp"

namespace nearfar::os {

/// Adjacent pages of 4 KiB that are in the same place.
struct PageRun {
  std::uint64_t address = 0;
  std::uint64_t pages = 0;
  int node = 0; ///< or -errno: why the node is unknown, or why the pages did not move

  bool operator==(const PageRun&) const = default;
};

/// Search for present pages. The kernel is asked for ranges (PAGEMAP_SCAN, Linux 6.7) if it can be,
/// so that reserved address space costs nothing; otherwise for each page.
enum class PageSearch : unsigned char { by_range, by_page };

/// Pages that were found, and the address from which on the search has not looked.
struct LocatedPages {
  std::vector<PageRun> runs;
  std::uint64_t end = 0;
};

class ProcessPages {
public:
  /// Errors: not_found, no_permission.
  static Result<ProcessPages> open(pid_t process, PageSearch search = PageSearch::by_range);

  /// False once the process has ended or runs another program (exec), and for a kernel thread.
  bool is_current() const;

  /// Pages of a range that are in memory, by node, in the order of addresses. -EFAULT in place of
  /// a node: the kernel's shared page of zeros. Stops after so many pages, or after
  /// milliseconds of search in absent memory. Errors: not_found, no_permission.
  Result<LocatedPages> locate(std::uint64_t from, std::uint64_t to, std::uint64_t max_pages) const;

  /// Pages of a range that are in memory or in swap, in the order of addresses, without their nodes.
  /// Stops as locate() does; empty once the process has ended.
  LocatedPages held(std::uint64_t from, std::uint64_t to, std::uint64_t max_pages) const;

  /// Moves pages to a node (MPOL_MF_MOVE), and returns the same pages with the node that each is on
  /// now, or the reason why it is not on `node`: -EBUSY (pinned, or in use by the kernel), -EACCES
  /// (mapped by other processes too), -ENOMEM, -ENOENT (no longer there), -EFAULT (no longer
  /// mapped). `shared`: also pages that other processes map; needs CAP_SYS_NICE. Errors: not_found,
  /// no_permission, unsupported (the process may not use the node).
  Result<std::vector<PageRun>> move(std::span<const PageRun> runs, int node, bool shared) const;

private:
  LocatedPages search(std::uint64_t from, std::uint64_t to, std::uint64_t max_pages,
                      bool swapped) const;
  LocatedPages scan_ranges(std::uint64_t from, std::uint64_t to, std::uint64_t max_pages,
                           bool swapped) const;
  LocatedPages read_pages(std::uint64_t from, std::uint64_t to, std::uint64_t max_pages,
                          bool swapped) const;

  pid_t process_ = 0;
  File map_;
  bool has_scan_ = false;
};

} // namespace nearfar::os
