#include "os/guard.hpp"

#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <ctime>
#include <sys/time.h>

namespace nearfar::os {

namespace {

constexpr int watched[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr std::size_t watched_count = sizeof watched / sizeof watched[0];

// The handlers have no other way to know of the one Guard there is.
sigjmp_buf back;
volatile std::sig_atomic_t inside = 0;
volatile std::sig_atomic_t ticks = 0;
volatile int caught_signal = 0;
volatile std::uintptr_t caught_address = 0;

void on_crash(int signal, siginfo_t* info, void*) {
  if (inside == 0) { // not ours: the default action
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    return;
  }
  caught_signal = signal;
  caught_address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  siglongjmp(back, static_cast<int>(Ending::crashed));
}

void on_tick(int) {
  ticks = ticks + 1;
  if (inside != 0 && ticks > static_cast<int>(Guard::ticks_per_limit))
    siglongjmp(back, static_cast<int>(Ending::hung));
}

} // namespace

struct Guard::Saved {
  struct sigaction actions[watched_count];
  struct sigaction tick;
  itimerval timer;
  stack_t stack;
  alignas(16) char memory[1 << 16];
};

Guard::Guard(std::uint64_t limit_ms) : saved_(new Saved) {
  stack_t own{};
  own.ss_sp = saved_->memory; // a stack that overflowed has no room for the handler
  own.ss_size = sizeof saved_->memory;
  sigaltstack(&own, &saved_->stack);
  struct sigaction action {};
  action.sa_sigaction = on_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (std::size_t i = 0; i < watched_count; ++i)
    sigaction(watched[i], &action, &saved_->actions[i]);
  struct sigaction tick {};
  tick.sa_handler = on_tick;
  tick.sa_flags = SA_ONSTACK | SA_NODEFER | SA_RESTART;
  sigaction(SIGPROF, &tick, &saved_->tick);
  const std::uint64_t period_us = limit_ms * 1000 / ticks_per_limit + 1;
  itimerval timer{};
  timer.it_interval = {static_cast<time_t>(period_us / 1'000'000),
                       static_cast<suseconds_t>(period_us % 1'000'000)};
  timer.it_value = timer.it_interval;
  setitimer(ITIMER_PROF, &timer, &saved_->timer);
}

Guard::~Guard() {
  setitimer(ITIMER_PROF, &saved_->timer, nullptr);
  sigaction(SIGPROF, &saved_->tick, nullptr);
  for (std::size_t i = 0; i < watched_count; ++i)
    sigaction(watched[i], &saved_->actions[i], nullptr);
  sigaltstack(&saved_->stack, nullptr);
  delete saved_;
}

Guarded Guard::run(void (*call)(void*), void* context) {
  ticks = 0;
  // The mask is not saved (that would be a system call): the handlers block nothing.
  const int how = sigsetjmp(back, 0);
  if (how != 0) {
    inside = 0;
    Guarded result{static_cast<Ending>(how), 0, 0};
    if (result.ending == Ending::crashed) {
      result.signal = caught_signal;
      result.address = caught_address;
    }
    return result;
  }
  inside = 1;
  call(context);
  inside = 0;
  return {};
}

} // namespace nearfar::os
