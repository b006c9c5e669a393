// A lock of four bytes that allocates nothing and can be taken over by the child of a fork.
//
// Purpose        for code that runs below malloc, where std::mutex may not be used.
// Cost           one atomic exchange each way when nobody else wants it; waiters sleep in the
// kernel. Freestanding   no exceptions, no C++ runtime.
#pragma once

#include <atomic>
#include <cstdint>

namespace nearfar::os {

class Lock {
public:
  void lock() {
    std::uint32_t expected = free;
    if (!state_.compare_exchange_strong(expected, taken, std::memory_order_acquire)) wait();
  }
  void unlock() {
    if (state_.exchange(free, std::memory_order_release) == contended) wake();
  }
  /// In the child of a fork whose parent held the lock: nobody can be waiting there.
  void reset() { state_.store(free, std::memory_order_relaxed); }

private:
  static constexpr std::uint32_t free = 0, taken = 1, contended = 2;
  void wait();
  void wake();
  std::atomic<std::uint32_t> state_{free};
};

/// Holds a lock for a block of code.
class Hold {
public:
  explicit Hold(Lock& lock) : lock_(lock) { lock_.lock(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() { lock_.unlock(); }

private:
  Lock& lock_;
};

/// Wakes one waiting thread; may be rung in a signal handler.
class Bell {
public:
  void ring();
  /// Returns once it was rung since the last return.
  void wait();

private:
  std::atomic<std::uint32_t> rung_{0};
};

} // namespace nearfar::os
