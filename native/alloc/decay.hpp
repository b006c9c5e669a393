// Returns freed memory to the system after a time.
//
// Time is counted in ticks of the decay time. What was freed in tick t and not used since is
// returned from tick t + 2 on, that is after at least one whole tick, by the next call of malloc or
// free that takes a slow path (refills or flushes a thread's cache, or handles a large block). A
// pause without such calls is one tick, of any length: a program that continues uses its memory
// again. The library never creates a thread for this: libc frees blocks while it holds locks of its
// own, for instance that of its cache of thread stacks, which pthread_create() acquires, too.
//
// Thread safety  any thread; calls nothing of libc except a clock.
#pragma once

#include <atomic>
#include <cstdint>

#include "alloc/lock_order.hpp"
#include "os/lock.hpp"

namespace nearfar::alloc {

class Decay {
public:
  std::uint8_t tick() const { return tick_.load(std::memory_order_relaxed); }

  /// Milliseconds; 0 returns memory with the next slow path, negative keeps it.
  void set_ms(int milliseconds) {
    above_default_ms_.store(milliseconds - default_ms, std::memory_order_relaxed);
  }
  bool immediate() const { return ms() == 0; }

  /// Counts a tick if its time has passed. Returns whether memory may be due: the caller then calls
  /// Allocator::return_old_memory(), holding no lock.
  bool advance();

  /// Held while purging: memory that is being returned is in no list, so fork waits for it.
  os::Lock purge_lock NEARFAR_LOCK_LEVEL(purge);

private:
  static constexpr int default_ms = 1000;
  int ms() const { return default_ms + above_default_ms_.load(std::memory_order_relaxed); }

  std::atomic<std::uint8_t> tick_{0};
  std::atomic<int> above_default_ms_{0}; ///< relative, so that an unused allocator is zero
  std::atomic<std::uint64_t> last_tick_ms_{0};
};

} // namespace nearfar::alloc
