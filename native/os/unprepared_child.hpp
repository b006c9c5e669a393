// Children that no fork handler prepared: those of _Fork(), and of clone() without CLONE_VM.
//
// Such a child has the locks and the data of this library as they were at that moment. Another
// thread of the parent may have held a lock, which stays locked in the child. mmap() has to work in
// the child all the same: it is a bare system call, and safe in signal handlers.
//
// Method         a word that the kernel clears in every child (MADV_WIPEONFORK, Linux 4.14); fork
//                handlers set it again. With a kernel that refuses this, such children are not
//                detected.
// Cost           two loads.
// Thread safety  any thread and signal handlers.
// Freestanding   no exceptions, no C++ runtime; nothing allocates.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "os/address_space.hpp"

namespace nearfar::os {

namespace detail {

/// A page of its own, because the kernel clears whole pages.
struct alignas(page_bytes) WipedPage {
  std::atomic<std::uint32_t> is_prepared{0};
};
extern WipedPage wiped_page;
extern std::atomic<bool> watches_children;

} // namespace detail

/// Detects such children from now on.
void watch_children();

/// For the handler that fork() calls in the child: the child is consistent.
inline void mark_prepared() { detail::wiped_page.is_prepared.store(1, std::memory_order_relaxed); }

inline bool is_unprepared_child() {
  return detail::watches_children.load(std::memory_order_relaxed) &&
         detail::wiped_page.is_prepared.load(std::memory_order_relaxed) == 0;
}

} // namespace nearfar::os
