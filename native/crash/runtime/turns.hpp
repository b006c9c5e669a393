// One interleaving of the threads of a program: one thread goes first, and waits before one of its
// flushes, while its stores can be seen but are not durable, until the others have gone on.
//
// Turn           NEARFAR_CRASH_TURN=THREAD:FLUSH. Threads have numbers in the order in which they are
//                created, from 1; flushes count from the thread's first operation, from 1, and 0 is
//                none. Without the variable, nothing here does anything.
// Waiting        the other threads wait at their first operation (nearfar_crash_begin) until the
//                first thread waits or has ended. It waits until all others have ended, or until
//                none of them has begun or ended an operation for half a second: they wait for a
//                lock of its own.
// Thread safety  all members, also in signal handlers.
#pragma once

#include <cstdint>

namespace nearfar::crash::runtime {

/// Before the program has threads. A null text asks for nothing.
void request_turn(const char* text);
/// Whether a turn was requested: threads have the numbers above in the log, too.
bool has_turns();

/// The number of a created thread, from 1, and the one that it has in the log.
struct NumberedThread {
  int number = 0;
  std::uint16_t in_log = 0;
};
/// For the next thread that is created.
NumberedThread number_thread();
/// The calling thread begins, or ends.
void turn_at_thread_start(NumberedThread made);
void turn_at_thread_end();

/// The calling thread begins or ends an operation.
void turn_at_begin();
void turn_at_end();
/// The calling thread is about to flush some of the pool.
void turn_at_flush();

} // namespace nearfar::crash::runtime
