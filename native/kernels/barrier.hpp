// A barrier that pinned threads use many times. It spins and yields, so that threads which share a
// CPU make progress, although slowly.
//
// Thread safety  all members call wait(); writes before wait() are visible to all members after it.
#pragma once

#include <atomic>
#include <cstddef>
#include <sched.h>

#include "os/cpu.hpp"

namespace nearfar::kernels {

class Barrier {
public:
  explicit Barrier(std::size_t members) : members_(members), missing_(members) {}

  void wait() {
    const std::size_t round = round_.load(std::memory_order_relaxed);
    if (missing_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      missing_.store(members_, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    for (unsigned spins = 0; round_.load(std::memory_order_acquire) == round; ++spins) {
      os::spin_pause();
      if (spins % 1024 == 1023) sched_yield();
    }
  }

private:
  const std::size_t members_;
  alignas(os::cache_line_bytes) std::atomic<std::size_t> missing_;
  alignas(os::cache_line_bytes) std::atomic<std::size_t> round_{0};
};

} // namespace nearfar::kernels
