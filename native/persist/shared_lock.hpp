// A lock for one writer or many readers: one word, and one atomic operation each way without
// contention.
//
// A thread that must wait sleeps in the kernel (std::atomic::wait). Readers that arrive while a
// thread waits also wait, so that writers do not starve. Not recursive, neither for readers nor for
// writers.
// Thread safety  all members, by several threads.
#pragma once

#include <atomic>
#include <cstdint>

namespace nearfar::persist {

class SharedLock {
public:
  void lock() {
    std::uint32_t expected = 0;
    if (!word_.compare_exchange_strong(expected, writer, std::memory_order_acquire,
                                       std::memory_order_relaxed)) [[unlikely]]
      wait_until([](std::uint32_t word) { return (word & ~waiting) == 0 ? word | writer : word; });
  }
  void unlock() {
    if ((word_.exchange(0, std::memory_order_release) & waiting) != 0) word_.notify_all();
  }

  void lock_shared() {
    std::uint32_t word = word_.load(std::memory_order_relaxed);
    if ((word & (writer | waiting)) != 0 ||
        !word_.compare_exchange_strong(word, word + 1, std::memory_order_acquire,
                                       std::memory_order_relaxed)) [[unlikely]]
      wait_until([](std::uint32_t seen) {
        // The last reader has left, and has woken all threads that waited: the bit has no use.
        if (seen == waiting) return std::uint32_t{1};
        return (seen & (writer | waiting)) == 0 ? seen + 1 : seen;
      });
  }
  void unlock_shared() {
    if (word_.fetch_sub(1, std::memory_order_release) == (waiting | 1)) word_.notify_all();
  }

private:
  static constexpr std::uint32_t writer = 1u << 31;
  static constexpr std::uint32_t waiting = 1u << 30; ///< below it, the number of readers

  /// Tries until `entered(word)` is another word, and that word could be stored.
  template <class Entered>
  [[gnu::noinline]] void wait_until(const Entered& entered) {
    std::uint32_t word = word_.load(std::memory_order_relaxed);
    for (;;) {
      const std::uint32_t wanted = entered(word);
      if (wanted != word) {
        if (word_.compare_exchange_weak(word, wanted, std::memory_order_acquire,
                                        std::memory_order_relaxed))
          return;
        continue;
      }
      if ((word & waiting) == 0 &&
          !word_.compare_exchange_weak(word, word | waiting, std::memory_order_relaxed))
        continue;
      word_.wait(word | waiting, std::memory_order_relaxed);
      word = word_.load(std::memory_order_relaxed);
    }
  }

  std::atomic<std::uint32_t> word_{0};
};

} // namespace nearfar::persist
