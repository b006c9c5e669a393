#include "crash/runtime/locks.hpp"

#include <ctime>
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <threads.h>

#include "crash/runtime/callers.hpp"
#include "crash/runtime/lock.hpp"
#include "crash/runtime/recording.hpp"
#include "crash/runtime/replaced.hpp"

namespace nearfar::crash::runtime {

LockRanges lock_ranges;

namespace {

void remember(const LockRange& lock) {
  for (int i = 0; i < lock_ranges.count; ++i)
    if (lock_ranges.range[i].offset == lock.offset) {
      lock_ranges.range[i].bytes = lock.bytes;
      return;
    }
  if (lock_ranges.count < LockRanges::most) lock_ranges.range[lock_ranges.count++] = lock;
}

} // namespace

void report_lock(const volatile void* at, std::size_t bytes, const void* code) {
  const auto* lock = static_cast<const char*>(const_cast<const void*>(at));
  if (regions.count == 0 || region_of(lock) == nullptr) return;
  {
    const Lock locked;
    if (is_in_library(code)) { // a PMEMmutex begins with the number of the run that it is of
      lock -= sizeof(std::uint64_t);
      bytes += sizeof(std::uint64_t);
    }
    const RecordedRegion* const region = region_of(lock);
    if (region == nullptr) return;
    const auto into = static_cast<std::uint64_t>(lock - region->start);
    remember({region->offset + into, bytes});
  }
  report_use(Use::never_durable, lock, bytes, code); // another object may have been there
}

} // namespace nearfar::crash::runtime

namespace {

/// Of the type of a mutex, as glibc has it in the mutex (PTHREAD_MUTEX_ROBUST_NORMAL_NP and
/// PTHREAD_MUTEX_PRIO_INHERIT_NP of its nptl/pthreadP.h).
constexpr int is_robust = 16, inherits_priority = 32;

/// The kernel itself stores to such a mutex, which it cannot in a page that is read-only: the program
/// would go on without the mutex, or wait for it forever.
void refuse_lock_of_kernel(const pthread_mutex_t* mutex) {
  using namespace nearfar::crash::runtime;
  if (seen != Seen::faults || regions.count == 0 || region_of(mutex) == nullptr) return;
  if ((mutex->__data.__kind & (is_robust | inherits_priority)) != 0)
    end_recording("a robust or priority-inheriting mutex lies in the pool: use --recorder "
                  "instrumented, or other memory for it");
}

} // namespace

using nearfar::crash::runtime::report_lock;
using nearfar::crash::runtime::settle_stores;

// Others go on after each of these calls (handover.cpp): what this thread has stored is recorded first.
#define NEARFAR_LOCK(result, name, parameters, arguments, lock, ...)                               \
  NEARFAR_EXPORT result name parameters __VA_ARGS__ {                                              \
    static auto* const real = reinterpret_cast<result(*) parameters>(dlsym(RTLD_NEXT, #name));     \
    settle_stores();                                                                               \
    report_lock(lock, sizeof *lock, NEARFAR_CALLER);                                               \
    return real arguments;                                                                         \
  }
#define NEARFAR_CONDITION(name, type, lock_type, parameters, arguments)                            \
  NEARFAR_EXPORT int name parameters {                                                             \
    static auto* const real = reinterpret_cast<int(*) parameters>(dlsym(RTLD_NEXT, #name));        \
    settle_stores();                                                                               \
    report_lock(condition, sizeof(type), NEARFAR_CALLER);                                          \
    report_lock(mutex, sizeof(lock_type), NEARFAR_CALLER);                                         \
    return real arguments;                                                                         \
  }

#define NEARFAR_MUTEX(name, parameters, arguments)                                                 \
  NEARFAR_EXPORT int name parameters noexcept {                                                    \
    static auto* const real = reinterpret_cast<int(*) parameters>(dlsym(RTLD_NEXT, #name));        \
    refuse_lock_of_kernel(mutex);                                                                  \
    report_lock(mutex, sizeof *mutex, NEARFAR_CALLER);                                             \
    return real arguments;                                                                         \
  }
NEARFAR_MUTEX(pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex))
NEARFAR_MUTEX(pthread_mutex_trylock, (pthread_mutex_t * mutex), (mutex))
NEARFAR_MUTEX(pthread_mutex_timedlock, (pthread_mutex_t * mutex, const timespec* until),
              (mutex, until))
NEARFAR_MUTEX(pthread_mutex_clocklock,
              (pthread_mutex_t * mutex, clockid_t clock, const timespec* until),
              (mutex, clock, until))
NEARFAR_LOCK(int, pthread_mutex_init, (pthread_mutex_t * mutex, const pthread_mutexattr_t* how),
             (mutex, how), mutex, noexcept)
NEARFAR_LOCK(int, pthread_mutex_unlock, (pthread_mutex_t * mutex), (mutex), mutex, noexcept)
NEARFAR_LOCK(int, pthread_rwlock_init, (pthread_rwlock_t * lock, const pthread_rwlockattr_t* how),
             (lock, how), lock, noexcept)
NEARFAR_LOCK(int, pthread_rwlock_unlock, (pthread_rwlock_t * lock), (lock), lock, noexcept)
NEARFAR_LOCK(int, pthread_spin_init, (pthread_spinlock_t * lock, int shared), (lock, shared), lock,
             noexcept)
NEARFAR_LOCK(int, pthread_spin_unlock, (pthread_spinlock_t * lock), (lock), lock, noexcept)
NEARFAR_LOCK(int, pthread_barrier_init,
             (pthread_barrier_t * barrier, const pthread_barrierattr_t* how, unsigned count),
             (barrier, how, count), barrier, noexcept)
NEARFAR_LOCK(int, pthread_barrier_wait, (pthread_barrier_t * barrier), (barrier), barrier, noexcept)
NEARFAR_LOCK(int, pthread_cond_init, (pthread_cond_t * condition, const pthread_condattr_t* how),
             (condition, how), condition, noexcept)
NEARFAR_LOCK(int, pthread_cond_signal, (pthread_cond_t * condition), (condition), condition,
             noexcept)
NEARFAR_LOCK(int, pthread_cond_broadcast, (pthread_cond_t * condition), (condition), condition,
             noexcept)
NEARFAR_CONDITION(pthread_cond_wait, pthread_cond_t, pthread_mutex_t,
                  (pthread_cond_t * condition, pthread_mutex_t* mutex), (condition, mutex))
NEARFAR_CONDITION(pthread_cond_timedwait, pthread_cond_t, pthread_mutex_t,
                  (pthread_cond_t * condition, pthread_mutex_t* mutex, const timespec* until),
                  (condition, mutex, until))
NEARFAR_CONDITION(pthread_cond_clockwait, pthread_cond_t, pthread_mutex_t,
                  (pthread_cond_t * condition, pthread_mutex_t* mutex, clockid_t clock,
                   const timespec* until),
                  (condition, mutex, clock, until))
NEARFAR_LOCK(int, sem_init, (sem_t * semaphore, int shared, unsigned value),
             (semaphore, shared, value), semaphore, noexcept)
NEARFAR_LOCK(int, sem_post, (sem_t * semaphore), (semaphore), semaphore, noexcept)

NEARFAR_LOCK(int, mtx_init, (mtx_t * mutex, int type), (mutex, type), mutex, noexcept)
NEARFAR_LOCK(int, mtx_unlock, (mtx_t * mutex), (mutex), mutex, noexcept)
NEARFAR_LOCK(int, cnd_init, (cnd_t * condition), (condition), condition, noexcept)
NEARFAR_LOCK(int, cnd_signal, (cnd_t * condition), (condition), condition, noexcept)
NEARFAR_LOCK(int, cnd_broadcast, (cnd_t * condition), (condition), condition, noexcept)
NEARFAR_CONDITION(cnd_wait, cnd_t, mtx_t, (cnd_t * condition, mtx_t* mutex), (condition, mutex))
NEARFAR_CONDITION(cnd_timedwait, cnd_t, mtx_t,
                  (cnd_t * condition, mtx_t* mutex, const timespec* until),
                  (condition, mutex, until))
