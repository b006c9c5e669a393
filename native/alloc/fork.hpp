// Fork handlers. All locks are acquired before a fork, so that no other thread holds one in the
// child, unless the fork interrupted a call of this library (fork_locks.hpp). In the child, blocks
// cached by other threads are freed, and each tier in a file is replaced by a copy or removed.
//
// Thread safety  any thread; fork() calls the handlers in the thread that forks.
#pragma once

namespace nearfar::alloc {

/// Registers the handlers for process_allocator, once.
void register_fork_handlers();

} // namespace nearfar::alloc
