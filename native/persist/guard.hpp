// Guards: locks of persistent data for transactions and readings.
//
// A guard is volatile; the program decides which data it guards. A transaction holds its guards
// exclusively until it has committed; readings share a guard.
// A thread can enter a guard that it already holds. A transaction inside a reading of the same
// guard would wait for itself forever, and is refused. Threads that acquire several guards must
// acquire them in the same order.
#pragma once

#include "persist/shared_lock.hpp"

namespace nearfar::persist {

class guard {
public:
  guard() = default;
  guard(const guard&) = delete;
  guard& operator=(const guard&) = delete;

private:
  friend class Transaction;
  friend class Reading;
  SharedLock lock_;
};

} // namespace nearfar::persist
