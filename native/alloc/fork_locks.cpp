#include "alloc/fork_locks.hpp"

#include "alloc/allocator.hpp"
#include "alloc/metadata.hpp"
#include "os/process.hpp"

namespace nearfar::alloc {

namespace {

/// Calls visit(lock) for each lock in the order of lock_order.hpp. While tiers_lock is held, the
/// set of locks is fixed, except that arenas are added until the lock of arenas is held. An arena
/// is never freed.
template <class Visit>
void for_each_lock(const Visit& visit) {
  Allocator& a = process_allocator;
  visit(a.configuration_lock);
  visit(a.tiers_lock);
  visit(a.variables.lock);
  visit(a.mappings.lock);
  visit(a.decay.purge_lock);
  visit(a.arenas.lock());
  visit(a.caches.lock());
  for (TierHeap& tier : a.tiers)
    if (tier.ready())
      for (SlabClass& c : tier.classes)
        visit(c.lock());
  a.arenas.for_each_existing([&](Arena& arena) {
    for (SlabClass& c : arena.classes)
      visit(c.lock());
  });
  for (TierHeap& tier : a.tiers)
    if (tier.ready()) visit(tier.runs.lock());
  visit(metadata_lock());
  visit(a.window.lock());
}

/// The locks that the interrupted call holds.
struct HeldLocks {
  static constexpr unsigned capacity =
      8; ///< signals are blocked under the first four of eleven levels
  os::Lock* locks[capacity] = {};
  unsigned count = 0;

  bool contains(const os::Lock& lock) const {
    for (unsigned i = 0; i < count; ++i)
      if (locks[i] == &lock) return true;
    return false;
  }
};
constinit HeldLocks interrupted; ///< during a fork; guarded by the locks acquired for it

constexpr unsigned timeout_ms = 20; ///< for each lock
constexpr unsigned pause_ms = 2;

HeldLocks find_held() {
  HeldLocks held;
  for_each_lock([&](os::Lock& lock) {
    if (lock.held_by_this_thread() && held.count < HeldLocks::capacity)
      held.locks[held.count++] = &lock;
  });
  return held;
}

/// Acquires the locks that become free in time: their holders may wait for a lock held here.
void lock_what_is_free() {
  for_each_lock([](os::Lock& lock) NEARFAR_NO_THREAD_SAFETY_ANALYSIS {
    if (!lock.held_by_this_thread()) static_cast<void>(lock.lock_within(timeout_ms));
  });
}

/// Acquires all locks, or none and returns false if one does not become free in time.
bool lock_all_in_time() {
  bool all = true;
  for_each_lock([&](os::Lock& lock) NEARFAR_NO_THREAD_SAFETY_ANALYSIS {
    all = all && lock.lock_within(timeout_ms);
  });
  if (all) return true;
  for_each_lock([](os::Lock& lock) NEARFAR_NO_THREAD_SAFETY_ANALYSIS {
    if (lock.held_by_this_thread()) lock.unlock();
  });
  return false;
}

/// Acquires all locks. After a timeout releases them, pauses and tries again, because the holder of
/// a lock may be in a handler that forks, and wait for libc's lock of the list of streams, which
/// this thread has acquired for its own fork.
void lock_all() {
  while (!lock_all_in_time())
    os::pause_fork(pause_ms);
}

} // namespace

bool fork_interrupted_call() { return interrupted.count > 0; }

void lock_for_fork() {
  const HeldLocks held = find_held();
  if (held.count == 0)
    lock_all();
  else
    lock_what_is_free();
  interrupted = held;
}

void unlock_in_parent() {
  const HeldLocks held = interrupted; // the next fork may begin once the first lock is free
  for_each_lock([&](os::Lock& lock) NEARFAR_NO_THREAD_SAFETY_ANALYSIS {
    if (lock.held_by_this_thread() && !held.contains(lock)) lock.unlock();
  });
}

void reset_locks_in_child() {
  for_each_lock([](os::Lock& lock) {
    if (!interrupted.contains(lock)) lock.reset();
  });
}

} // namespace nearfar::alloc
