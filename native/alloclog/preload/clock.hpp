// Samples of CPU time by a signal, for machines whose kernel refuses perf_event_open().
//
// Timer          one for each thread, of its CPU time in user mode. Such a timer ends at a tick of
//                the kernel that finds the thread there, at most CONFIG_HZ times a second, so that
//                no system call is interrupted. The signal is SIGPROF, its handler writes a
//                ClockSample.
// Threads        start their timer in pthread_create(), which the library replaces.
// SIGPROF        the program can use it as before: its sigaction() and signal() set the action that
//                the handler performs for signals that are not of these timers.
// Fork, exec     the kernel gives a child no timers; it starts its own when it joins the log.
// Not sampled    threads that block SIGPROF, those that are not made by pthread_create(), and
//                programs that set signals by the system call (Go).
// Thread safety  any thread.
#pragma once

#include <cstdint>

namespace nearfar::alloclog {

/// Starts the clock of this process, and that of the calling thread. The process must have a log.
void start_clock(std::uint32_t period_ns);

} // namespace nearfar::alloclog
