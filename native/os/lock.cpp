#include "os/lock.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/cpu.hpp"
#include "os/process.hpp"

namespace nearfar::os {

__thread std::uint32_t lock_holder_number __attribute__((tls_model("initial-exec"))) = 0;

std::uint32_t Lock::number_this_thread() {
  static constinit std::atomic<std::uint32_t> last{0};
  lock_holder_number = (last.fetch_add(1, std::memory_order_relaxed) + 1) & ~contended;
  return lock_holder_number;
}

bool Lock::wait_once(const timespec* limit) NEARFAR_NO_THREAD_SAFETY_ANALYSIS {
  std::uint32_t seen = state_.load(std::memory_order_relaxed);
  if (seen == unlocked) // others may be asleep: the holder has to wake one when it is done
    return state_.compare_exchange_strong(seen, this_thread() | contended,
                                          std::memory_order_acquire);
  if ((seen & contended) != 0 ||
      state_.compare_exchange_strong(seen, seen | contended, std::memory_order_relaxed))
    syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, seen | contended, limit, nullptr, 0);
  return false;
}

void Lock::wait() NEARFAR_NO_THREAD_SAFETY_ANALYSIS {
  // A critical section is shorter than going to sleep, unless its owner was preempted.
  constexpr int spins = 100;
  for (int i = 0; i < spins; ++i) {
    spin_pause();
    if (state_.load(std::memory_order_relaxed) == unlocked && try_lock()) return;
  }
  while (!wait_once(nullptr)) {
  }
}

bool Lock::wait_for(unsigned ms) NEARFAR_NO_THREAD_SAFETY_ANALYSIS {
  constexpr timespec slice{0, 1'000'000};
  const std::uint64_t end_ms = coarse_ms() + ms;
  while (!wait_once(&slice))
    if (coarse_ms() > end_ms) return false;
  return true;
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
