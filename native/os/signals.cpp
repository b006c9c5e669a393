#include "os/signals.hpp"

#include <csignal>
#include <initializer_list>
#include <sys/syscall.h>
#include <unistd.h>

namespace nearfar::os {

namespace {

constexpr SignalMask mask_of(std::initializer_list<int> numbers) {
  SignalMask mask = 0;
  for (const int number : numbers)
    mask |= SignalMask{1} << (number - 1);
  return mask;
}

constexpr SignalMask faults = mask_of({SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS});
constexpr SignalMask of_glibc = mask_of({32, 33}); ///< cancellation, setuid() of all threads

} // namespace

SignalMask block_signals() {
  const SignalMask blocked = ~(faults | of_glibc);
  SignalMask before = 0;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, &blocked, &before, sizeof before);
  return before;
}

void restore_signals(SignalMask before) {
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
}

} // namespace nearfar::os
