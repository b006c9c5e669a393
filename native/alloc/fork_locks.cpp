#include "alloc/fork_locks.hpp"

#include "alloc/lock_order.hpp"
#include "os/process.hpp"

namespace nearfar::alloc {

namespace {

/// The locks that the interrupted call holds.
struct KeptLocks {
  static constexpr unsigned most = 8; ///< more than a thread ever holds at once
  os::Lock* locks[most] = {};
  unsigned count = 0;

  bool has(const os::Lock& lock) const {
    for (unsigned i = 0; i < count; ++i)
      if (locks[i] == &lock) return true;
    return false;
  }
};
constinit KeptLocks kept; ///< during a fork; guarded by the locks that are taken for it

constexpr unsigned patience_ms = 100;

KeptLocks find_held() {
  KeptLocks held;
  for_each_lock([&](os::Lock& lock) {
    if (lock.held_by_this_thread() && held.count < KeptLocks::most)
      held.locks[held.count++] = &lock;
  });
  return held;
}

/// Takes what it can: a thread that holds one lock may wait for one that is held here.
void lock_what_is_free() {
  unsigned left_ms = patience_ms;
  for_each_lock([&](os::Lock& lock) {
    while (!lock.held_by_this_thread() && !lock.try_lock() && left_ms > 0) {
      os::sleep_ms(1);
      --left_ms;
    }
  });
}

} // namespace

bool fork_interrupted_call() { return kept.count > 0; }

void lock_for_fork() {
  const KeptLocks held = find_held();
  if (held.count == 0)
    for_each_lock([](os::Lock& lock) { lock.lock(); });
  else
    lock_what_is_free();
  kept = held;
}

void unlock_in_parent() {
  const KeptLocks held = kept; // the next fork may begin when the first lock is free
  for_each_lock([&](os::Lock& lock) {
    if (lock.held_by_this_thread() && !held.has(lock)) lock.unlock();
  });
}

void reset_locks_in_child() {
  for_each_lock([](os::Lock& lock) {
    if (!kept.has(lock)) lock.reset();
  });
}

} // namespace nearfar::alloc
