// A sequence lock: writers lock; a version shows readers whether the data that they have read is
// consistent.
//
// A reader gets the version with begin(), reads by acquire loads, and calls still(): false means
// that a writer has interfered, and the data is invalid. A writer fences before it unlocks, so that
// a reader never sees a store that is not durable yet.
// Thread safety  all members may be called by several threads, but add_live() only by the holder of
//                the lock, or while no other thread writes.
#pragma once

#include <atomic>
#include <cstdint>
#include <sched.h>

namespace nearfar::structures {

class alignas(16) SeqLock {
public:
  void lock() {
    for (;;) {
      std::uint32_t version = version_.load(std::memory_order_relaxed);
      if ((version & 1u) == 0 &&
          version_.compare_exchange_weak(version, version + 1, std::memory_order_acquire))
        return;
      if ((version & 1u) != 0) sched_yield(); // its holder may wait for this processor
    }
  }
  void unlock() {
    version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  bool is_held() const { return (version_.load(std::memory_order_acquire) & 1u) != 0; }

  std::uint32_t begin() const {
    const std::uint32_t version = version_.load(std::memory_order_acquire);
    if ((version & 1u) == 0) [[likely]]
      return version;
    return wait();
  }
  bool still(std::uint32_t version) const {
    return version_.load(std::memory_order_acquire) == version;
  }

  /// A part of the number of entries: the sum over all locks of a structure is the number.
  std::atomic<std::int64_t> live{0};

  void add_live(std::int64_t change) {
    live.store(live.load(std::memory_order_relaxed) + change, std::memory_order_relaxed);
  }

private:
  /// Apart from begin(), which is inlined into every reader.
  [[gnu::noinline]] std::uint32_t wait() const {
    for (;;) {
      sched_yield();
      const std::uint32_t version = version_.load(std::memory_order_acquire);
      if ((version & 1u) == 0) return version;
    }
  }

  std::atomic<std::uint32_t> version_{0};
};

} // namespace nearfar::structures
