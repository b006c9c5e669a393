// Copies into private memory that was never touched.
//
// The kernel clears a page when it is first touched, before it is written. With userfaultfd(2) it
// fills pages with the copy instead, in two thirds of the time. If that is refused (a kernel before
// 5.11) or system calls are filtered (seccomp), pages are touched. A filter may end the program for
// a call that it does not expect: then neither userfaultfd(2) nor process_vm_readv(2) is used.
//
// Thread safety  one thread; no other thread uses the memory meanwhile.
// Freestanding   no exceptions, no C++ runtime; nothing allocates.
#pragma once

#include <cstddef>

#include "os/file.hpp"

namespace nearfar::os {

class PageCopier {
public:
  /// For copies to parts of [to, to + bytes), which is page-aligned anonymous memory.
  PageCopier(std::byte* to, std::size_t bytes);
  PageCopier(const PageCopier&) = delete;
  PageCopier& operator=(const PageCopier&) = delete;
  ~PageCopier() { stop(); }

  /// Copies whole pages to pages that were not copied to before. Pages that cannot be read are
  /// skipped, unless system calls are filtered: other threads make guards of a heap inaccessible
  /// meanwhile, if the fork is in a handler and its thread could not have all locks.
  void copy(std::byte* to, const std::byte* from, std::size_t bytes);

private:
  void stop();
  std::size_t copy_by_kernel(std::byte* to, const std::byte* from, std::size_t bytes) const;

  std::byte* to_;
  std::size_t bytes_;
  bool filtered_; ///< by seccomp
  File faults_;   ///< invalid if the kernel cannot copy
};

} // namespace nearfar::os
