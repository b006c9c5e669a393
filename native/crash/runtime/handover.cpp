// Calls after which other threads go on: the thread releases a lock, wakes a thread, or waits. Others may
// rely on what it has stored from here on, so a store that waits for the thread's next call
// (instrumented.cpp) is recorded first. Atomic operations are calls of the compiler's; write() and the
// like are in files.cpp, the end of a thread is in threads.cpp.
#include <csignal>
#include <ctime>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <threads.h>
#include <unistd.h>

#include "crash/runtime/recording.hpp"

using nearfar::crash::runtime::settle_stores;

#define NEARFAR_HANDOVER(result, name, parameters, arguments, ...)                                 \
  extern "C" [[gnu::visibility("default")]] result name parameters __VA_ARGS__ {                   \
    static auto* const real = reinterpret_cast<result(*) parameters>(dlsym(RTLD_NEXT, #name));     \
    settle_stores();                                                                               \
    return real arguments;                                                                         \
  }

NEARFAR_HANDOVER(int, pthread_mutex_unlock, (pthread_mutex_t * mutex), (mutex), noexcept)
NEARFAR_HANDOVER(int, pthread_rwlock_unlock, (pthread_rwlock_t * lock), (lock), noexcept)
NEARFAR_HANDOVER(int, pthread_spin_unlock, (pthread_spinlock_t * lock), (lock), noexcept)
NEARFAR_HANDOVER(int, pthread_barrier_wait, (pthread_barrier_t * barrier), (barrier), noexcept)
NEARFAR_HANDOVER(int, pthread_cond_signal, (pthread_cond_t * condition), (condition), noexcept)
NEARFAR_HANDOVER(int, pthread_cond_broadcast, (pthread_cond_t * condition), (condition), noexcept)
NEARFAR_HANDOVER(int, pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t* mutex),
                 (condition, mutex))
NEARFAR_HANDOVER(int, pthread_cond_timedwait,
                 (pthread_cond_t * condition, pthread_mutex_t* mutex, const timespec* until),
                 (condition, mutex, until))
NEARFAR_HANDOVER(int, pthread_cond_clockwait,
                 (pthread_cond_t * condition, pthread_mutex_t* mutex, clockid_t clock,
                  const timespec* until),
                 (condition, mutex, clock, until))
NEARFAR_HANDOVER(int, pthread_join, (pthread_t thread, void** result), (thread, result))
NEARFAR_HANDOVER(int, pthread_kill, (pthread_t thread, int signal), (thread, signal), noexcept)
NEARFAR_HANDOVER(int, sem_post, (sem_t * semaphore), (semaphore), noexcept)

NEARFAR_HANDOVER(int, mtx_unlock, (mtx_t * mutex), (mutex), noexcept)
NEARFAR_HANDOVER(int, cnd_signal, (cnd_t * condition), (condition), noexcept)
NEARFAR_HANDOVER(int, cnd_broadcast, (cnd_t * condition), (condition), noexcept)
NEARFAR_HANDOVER(int, cnd_wait, (cnd_t * condition, mtx_t* mutex), (condition, mutex))
NEARFAR_HANDOVER(int, cnd_timedwait, (cnd_t * condition, mtx_t* mutex, const timespec* until),
                 (condition, mutex, until))

NEARFAR_HANDOVER(int, kill, (pid_t process, int signal), (process, signal), noexcept)
NEARFAR_HANDOVER(ssize_t, send, (int fd, const void* data, std::size_t bytes, int flags),
                 (fd, data, bytes, flags))
NEARFAR_HANDOVER(ssize_t, sendmsg, (int fd, const msghdr* message, int flags), (fd, message, flags))

NEARFAR_HANDOVER(int, sched_yield, (), (), noexcept)
NEARFAR_HANDOVER(int, nanosleep, (const timespec* time, timespec* left), (time, left))
NEARFAR_HANDOVER(int, clock_nanosleep,
                 (clockid_t clock, int flags, const timespec* time, timespec* left),
                 (clock, flags, time, left))
NEARFAR_HANDOVER(int, usleep, (useconds_t time), (time))
NEARFAR_HANDOVER(unsigned, sleep, (unsigned seconds), (seconds))
