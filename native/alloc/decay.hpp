// Returning freed memory to the system after a while.
//
// Time is counted in ticks of the decay time. Memory that was freed in one tick and not used since
// is returned one tick later, by the next call of malloc or free that takes a slow path (refills or
// flushes a thread's cache, or handles a large block). No thread is ever created: libc frees blocks
// while it holds locks of its own, for instance that of its cache of thread stacks, which
// pthread_create() takes too.
//
// Thread safety  any thread; nothing here calls libc beyond reading a clock.
#pragma once

#include <atomic>
#include <cstdint>

#include "os/lock.hpp"

namespace nearfar::alloc {

extern std::atomic<std::uint8_t> decay_tick;
inline std::uint8_t current_tick() { return decay_tick.load(std::memory_order_relaxed); }

/// Milliseconds; 0 returns memory with the next slow path, negative keeps it forever.
void set_decay_ms(int milliseconds);

/// Counts the ticks that have passed. Returns whether memory may be due: return_old_memory() is to
/// be called then, without any lock of the heap.
bool advance_decay();

/// Returns old memory of all tiers to the system, unless another thread does so already. Keeps
/// errno.
void return_old_memory();

/// Held while purging: memory that is being returned is in no list meanwhile, and a fork waits for
/// it.
os::Lock& purge_lock();

} // namespace nearfar::alloc
