// Replaces fork(): signals are blocked during the whole call. glibc's fork() acquires a lock of its
// own to read the list of fork handlers, before the first handler can block signals and after the
// last one has restored them; a signal handler that forks meanwhile would wait for this lock
// forever. Calls of fork() inside libc (daemon(), forkpty()) do not come here.
#include <atomic>
#include <dlfcn.h>
#include <unistd.h>

#include "os/signals.hpp"

extern "C" pid_t __fork();

namespace {

using Fork = pid_t (*)();

constinit std::atomic<Fork> next_fork{__fork}; ///< glibc's until the next definition is looked up

[[gnu::constructor(101)]] void find_next_fork() {
  if (const auto function = reinterpret_cast<Fork>(dlsym(RTLD_NEXT, "fork")); function != nullptr)
    next_fork.store(function, std::memory_order_relaxed);
}

} // namespace

extern "C" __attribute__((visibility("default"), used)) pid_t fork() noexcept {
  const nearfar::os::SignalsBlocked blocked;
  return next_fork.load(std::memory_order_relaxed)();
}
