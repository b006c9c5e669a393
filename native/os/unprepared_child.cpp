#include "os/unprepared_child.hpp"

#include <sys/mman.h>

namespace nearfar::os {

namespace detail {

constinit WipedPage wiped_page;
constinit std::atomic<bool> watches_children{false};

} // namespace detail

void watch_children() {
  mark_prepared();
  detail::watches_children.store(
      madvise(&detail::wiped_page, sizeof detail::wiped_page, MADV_WIPEONFORK) == 0,
      std::memory_order_relaxed);
}

} // namespace nearfar::os
