// Acquires all locks of process_allocator for a fork.
//
// A fork can be called by a signal handler that interrupted a call of this library in the same
// thread. The locks of that call stay held, in the parent and in the child, where the call
// continues after the handler. Other threads may then wait for these locks while they hold outer
// ones, so that waiting for the outer ones could deadlock: each wait ends after a timeout. After a
// timeout, data guarded by a lock that was not acquired may be inconsistent in the child, which
// therefore must not call malloc (docs/how-to/hmalloc.md).
//
// Thread safety  one fork at a time, which the locks ensure; the caller blocks signals.
#pragma once

namespace nearfar::alloc {

void lock_for_fork();
void unlock_in_parent();
void reset_locks_in_child();

/// Whether the fork is called by a signal handler that interrupted a call holding locks.
bool fork_interrupted_call();

} // namespace nearfar::alloc
