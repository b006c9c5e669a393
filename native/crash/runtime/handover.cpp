// Calls after which other threads go on: the thread wakes a thread, or waits; locks.cpp and system_calls.cpp
// have more. Others may
// rely on what it has stored from here on, so a store that waits for the thread's next call
// (instrumented.cpp) is recorded first. Atomic operations are calls of the compiler's; write() and the
// like are in files.cpp, the end of a thread is in threads.cpp.
#include <csignal>
#include <ctime>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "crash/runtime/recording.hpp"

using nearfar::crash::runtime::settle_stores;

#define NEARFAR_HANDOVER(result, name, parameters, arguments, ...)                                 \
  extern "C" [[gnu::visibility("default")]] result name parameters __VA_ARGS__ {                   \
    static auto* const real = reinterpret_cast<result(*) parameters>(dlsym(RTLD_NEXT, #name));     \
    settle_stores();                                                                               \
    return real arguments;                                                                         \
  }

NEARFAR_HANDOVER(int, pthread_join, (pthread_t thread, void** result), (thread, result))
NEARFAR_HANDOVER(int, pthread_kill, (pthread_t thread, int signal), (thread, signal), noexcept)
NEARFAR_HANDOVER(int, raise, (int signal), (signal), noexcept)
NEARFAR_HANDOVER(int, kill, (pid_t process, int signal), (process, signal), noexcept)
NEARFAR_HANDOVER(ssize_t, send, (int fd, const void* data, std::size_t bytes, int flags),
                 (fd, data, bytes, flags))
NEARFAR_HANDOVER(ssize_t, sendmsg, (int fd, const msghdr* message, int flags), (fd, message, flags))

NEARFAR_HANDOVER(int, sched_yield, (), (), noexcept)
NEARFAR_HANDOVER(int, usleep, (useconds_t time), (time))
NEARFAR_HANDOVER(unsigned, sleep, (unsigned seconds), (seconds))
