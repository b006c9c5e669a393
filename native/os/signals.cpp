#include "os/signals.hpp"

#include <initializer_list>

namespace nearfar::os {

sigset_t block_signals() {
  sigset_t all;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
    sigdelset(&all, fault);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &all, &before);
  return before;
}

void restore_signals(const sigset_t& before) { pthread_sigmask(SIG_SETMASK, &before, nullptr); }

} // namespace nearfar::os
