// A lock of four bytes that allocates nothing and knows which thread holds it.
//
// Purpose        for code that runs below malloc, where std::mutex cannot be used.
// Fork           in the child of a fork, a lock keeps its holder's number, so a forking signal
//                handler can ask held_by_this_thread() which locks the interrupted code holds.
// Thread safety  any thread; an Event has one waiter.
// Cost           one atomic exchange each way without contention; waiters sleep in the kernel.
// Freestanding   no exceptions, no C++ runtime.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>

#include "base/thread_annotations.hpp"

namespace nearfar::os {

/// Number of the calling thread as a holder of locks, 0 before its first lock.
extern __thread std::uint32_t lock_holder_number __attribute__((tls_model("initial-exec")));

class NEARFAR_CAPABILITY("mutex") Lock {
public:
  void lock() NEARFAR_ACQUIRE() {
    if (!try_lock()) wait();
  }
  bool try_lock() NEARFAR_TRY_ACQUIRE(true) {
    std::uint32_t expected = unlocked;
    return state_.compare_exchange_strong(expected, this_thread(), std::memory_order_acquire);
  }
  /// Returns false if the lock does not become free in time.
  bool lock_within(unsigned ms) NEARFAR_TRY_ACQUIRE(true) { return try_lock() || wait_for(ms); }
  void unlock() NEARFAR_RELEASE() {
    if ((state_.exchange(unlocked, std::memory_order_release) & contended) != 0) wake();
  }
  bool held_by_this_thread() const {
    return (state_.load(std::memory_order_relaxed) & ~contended) == this_thread();
  }
  /// Call only in the child of a fork, where no other thread exists.
  void reset() { state_.store(unlocked, std::memory_order_relaxed); }

private:
  static constexpr std::uint32_t unlocked = 0;
  static constexpr std::uint32_t contended = std::uint32_t{1} << 31; ///< with the holder's number
  static std::uint32_t this_thread() {
    return lock_holder_number != 0 ? lock_holder_number : number_this_thread();
  }
  static std::uint32_t number_this_thread();
  void wait() NEARFAR_ACQUIRE();
  /// Acquires the lock if it is free, otherwise waits once; may return early.
  bool wait_once(const timespec* limit) NEARFAR_TRY_ACQUIRE(true);
  bool wait_for(unsigned ms) NEARFAR_TRY_ACQUIRE(true);
  void wake();
  std::atomic<std::uint32_t> state_{unlocked};
};

/// Holds a lock until the end of its scope.
class NEARFAR_SCOPED_CAPABILITY LockGuard {
public:
  explicit LockGuard(Lock& lock) NEARFAR_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;
  ~LockGuard() NEARFAR_RELEASE() { lock_.unlock(); }

private:
  Lock& lock_;
};

/// An event that one thread waits for. set() is async-signal-safe.
class Event {
public:
  void set();
  /// Waits until the event is set, and clears it.
  void wait();

private:
  std::atomic<std::uint32_t> is_set_{0};
};

} // namespace nearfar::os
