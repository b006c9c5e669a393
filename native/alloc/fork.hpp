// Forks: all locks are acquired before a fork, so that no other thread holds one in the child. The
// child takes over the caches of threads that it does not have, and copies of tiers in shared
// files, or loses these tiers.
#pragma once

namespace nearfar::alloc {

/// Registers the handlers for process_allocator, once.
void register_fork_handlers();

} // namespace nearfar::alloc
