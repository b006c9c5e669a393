// All locks of the library, taken for a fork.
//
// A fork can be called by a signal handler that interrupted a call of this library in the same
// thread. What that call holds stays as it is, in the parent and in the child, where the call goes
// on after the handler. Other threads may then wait for these locks and hold outer ones, so that
// waiting for those could last forever: it ends after a while. The lock that is not obtained
// guards consistent data, because its holder is about to take an inner lock (lock_order.hpp).
//
// Thread safety  one fork at a time, which the locks ensure; signals are blocked by the caller.
#pragma once

namespace nearfar::alloc {

void lock_for_fork();
void unlock_in_parent();
void reset_locks_in_child();

/// Whether the fork is called by a signal handler that interrupted a call which holds locks.
bool fork_interrupted_call();

} // namespace nearfar::alloc
