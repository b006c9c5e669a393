#include "os/lock.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/cpu.hpp"

namespace nearfar::os {

void Lock::wait() {
  // A critical section is shorter than going to sleep, unless its owner was taken off a processor.
  constexpr int spins = 100;
  for (int i = 0; i < spins; ++i) {
    spin_pause();
    std::uint32_t expected = free;
    if (state_.load(std::memory_order_relaxed) == free &&
        state_.compare_exchange_weak(expected, taken, std::memory_order_acquire))
      return;
  }
  while (state_.exchange(contended, std::memory_order_acquire) != free)
    syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, contended, nullptr, nullptr, 0);
}

void Bell::ring() {
  rung_.store(1, std::memory_order_release);
  syscall(SYS_futex, &rung_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void Bell::wait() {
  while (rung_.exchange(0, std::memory_order_acquire) == 0)
    syscall(SYS_futex, &rung_, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
}

void Lock::wake() { syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0); }

} // namespace nearfar::os
