#include "os/lock.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/cpu.hpp"

namespace nearfar::os {

__thread std::uint32_t lock_holder_number __attribute__((tls_model("initial-exec"))) = 0;

std::uint32_t Lock::number_this_thread() {
  static constinit std::atomic<std::uint32_t> last{0};
  lock_holder_number = (last.fetch_add(1, std::memory_order_relaxed) + 1) & ~contended;
  return lock_holder_number;
}

void Lock::wait() NEARFAR_NO_THREAD_SAFETY_ANALYSIS {
  // A critical section is shorter than going to sleep, unless its owner was preempted.
  constexpr int spins = 100;
  for (int i = 0; i < spins; ++i) {
    spin_pause();
    if (state_.load(std::memory_order_relaxed) == unlocked && try_lock()) return;
  }
  for (;;) {
    std::uint32_t seen = state_.load(std::memory_order_relaxed);
    if (seen == unlocked) { // others may be asleep: the holder has to wake one when it is done
      if (state_.compare_exchange_strong(seen, this_thread() | contended,
                                         std::memory_order_acquire))
        return;
      continue;
    }
    if ((seen & contended) == 0 &&
        !state_.compare_exchange_strong(seen, seen | contended, std::memory_order_relaxed))
      continue;
    syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, seen | contended, nullptr, nullptr, 0);
  }
}

void Event::set() {
  is_set_.store(1, std::memory_order_release);
  syscall(SYS_futex, &is_set_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void Event::wait() {
  while (is_set_.exchange(0, std::memory_order_acquire) == 0)
    syscall(SYS_futex, &is_set_, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
}

void Lock::wake() { syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0); }

} // namespace nearfar::os
