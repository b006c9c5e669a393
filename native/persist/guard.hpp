// Guards: who may read and write which data, until when.
//
// A guard is volatile and belongs to whatever data the program says. A transaction holds its guards
// alone until it has committed; a reading holds its guard together with other readings.
// A thread that enters a guard it already holds goes through; a transaction inside a reading of the
// same guard would wait for itself for ever, and is refused. Threads that take several guards take
// them in the same order, as with any locks.
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
