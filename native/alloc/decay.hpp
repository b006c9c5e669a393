// Giving freed memory back to the system after a while.
//
// Time is counted in ticks of the decay time. What was freed in one tick and not used since is
// given back one tick later, by a thread that exists only while there is something to give back.
// Where no thread can be started, the next one to free does it.
//
// Thread safety  any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "os/lock.hpp"

namespace nearfar::alloc {

extern std::atomic<std::uint8_t> decay_tick;
inline std::uint8_t current_tick() { return decay_tick.load(std::memory_order_relaxed); }

/// Milliseconds; negative keeps memory for ever.
void set_decay_ms(int milliseconds);

/// To be called, without any lock, after bytes went back to a class or run.
void note_freed(std::size_t bytes);
/// Starts what note_freed() has found due. To be called where libc may be called.
void start_decay_if_due();

/// In the child of a fork, where the thread is not.
void reset_decay();

/// Held by whoever purges: what is being given back is in no list meanwhile, and a fork waits for
/// it.
os::Lock& purge_lock();

} // namespace nearfar::alloc
