// The lock of the log and of the judge.
#pragma once

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crash/runtime/kernel.hpp"
#include "crash/runtime/recording.hpp"

namespace nearfar::crash::runtime {

/// Excludes other threads, and signal handlers of this one: a handler that stores to the pool would
/// wait for the lock that the code under it holds. A program without handlers is spared the system
/// calls, one that has created no thread the lock. The program's errno is kept.
class Lock {
public:
  Lock()
      : blocks_(seen == Seen::faults || has_handlers.load(std::memory_order_relaxed)),
        locks_(__libc_single_threaded == 0), error_(errno) {
    const std::uint64_t all = ~std::uint64_t{0};
    if (blocks_) system_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before_, sizeof all);
    while (locks_ && busy_.test_and_set(std::memory_order_acquire))
      ;
    held_ = true;
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() {
    held_ = false;
    if (locks_) busy_.clear(std::memory_order_release);
    if (blocks_) system_call(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_);
    errno = error_;
  }

  /// Whether the calling thread has it: the recorder writes its log, not the program a file.
  static bool is_held() { return held_; }
  /// In a child of fork(): the thread that held it in the parent does not exist here.
  static void forget() { busy_.clear(); }

private:
  static inline std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  static inline thread_local bool held_ = false;

  bool blocks_, locks_;
  int error_;
  std::uint64_t before_ = 0; ///< the kernel's signal set
};

} // namespace nearfar::crash::runtime
