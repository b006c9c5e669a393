// Clang reports locks that are acquired against the order of lock_order.hpp, and guarded data that
// is used without its lock. Compiled with -verify: an expected warning that is missing is an error.
#include "alloc/allocator.hpp"

namespace nearfar::alloc {

void acquire_in_order(Allocator& a) {
  const os::LockGuard outer(a.configuration_lock);
  const os::LockGuard inner(a.decay.purge_lock);
}

void acquire_adjacent_levels_in_reverse(Allocator& a) {
  const os::LockGuard outer(a.tiers_lock);
  // expected-warning@+1 {{'configuration_lock' must be acquired before 'tiers_lock'}}
  const os::LockGuard inner(a.configuration_lock);
}

void acquire_distant_levels_in_reverse(Allocator& a) {
  const os::LockGuard outer(a.tiers[0].runs.lock());
  // expected-warning@+1 {{'purge_lock' must be acquired before 'lock_'}}
  const os::LockGuard inner(a.decay.purge_lock);
}

void acquire_mappings_in_reverse(Allocator& a) {
  const os::LockGuard outer(a.mappings.lock);
  // expected-warning@+1 {{'lock' must be acquired before 'lock'}}
  const os::LockGuard inner(a.variables.lock);
}

void use_without_lock(Allocator& a) {
  // expected-warning@+1 {{requires holding mutex 'a.variables.lock'}}
  a.variables.drop_copies();
}

} // namespace nearfar::alloc
