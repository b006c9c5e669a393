// The recorder sees stores and flushes by SIGSEGV and SIGTRAP. A program may block all signals, or
// have handlers of its own for these two: what it asks for is kept from the kernel, and handlers
// for these two are called where the signal is not the recorder's.
#include <csignal>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>

#include "crash/runtime/handlers.hpp"
#include "crash/runtime/recording.hpp"
#include "crash/runtime/replaced.hpp"
#include "crash/runtime/storing_calls.hpp"

using namespace nearfar::crash::runtime;

namespace {

void keep_ours(sigset_t& set) {
  sigdelset(&set, SIGSEGV);
  sigdelset(&set, SIGTRAP);
}

/// pthread_sigmask() or sigprocmask(), but never blocks the recorder's signals.
template <class Real>
int change_mask(Real* real, int how, const sigset_t* set, sigset_t* before, const void* code) {
  static constexpr Output earlier[] = {item(2, sizeof(std::uint64_t))}; // the kernel's set
  const StoringCall call({how, as_word(set), as_word(before)}, earlier, code);
  sigset_t changed;
  if (set != nullptr && how != SIG_UNBLOCK && started()) {
    changed = *set;
    keep_ours(changed);
    set = &changed;
  }
  const int done = real(how, set, reinterpret_cast<sigset_t*>(call.words()[2]));
  return static_cast<int>(call.finish(done, "sigprocmask()"));
}

/// Called before a handler is installed.
void expect_handler(sighandler_t handler) {
  if (handler != SIG_DFL && handler != SIG_IGN) has_handlers = true;
}

/// signal() of one of the recorder's signals, by the sigaction() below.
sighandler_t replace(int number, sighandler_t handler) {
  struct sigaction action {
  }, before{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(number, &action, &before);
  return before.sa_handler;
}

using Mask = int(int, const sigset_t*, sigset_t*);
using Signal = sighandler_t(int, sighandler_t);
using Action = int(int, const struct sigaction*, struct sigaction*);

} // namespace

NEARFAR_EXPORT int sigprocmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  static auto* const real = reinterpret_cast<Mask*>(dlsym(RTLD_NEXT, "sigprocmask"));
  return change_mask(real, how, set, before, NEARFAR_CALLER);
}

NEARFAR_EXPORT int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  static auto* const real = reinterpret_cast<Mask*>(dlsym(RTLD_NEXT, "pthread_sigmask"));
  return change_mask(real, how, set, before, NEARFAR_CALLER);
}

// These do not call the sigaction() below. signal() is __sysv_signal() in strict ISO C.
#define NEARFAR_SIGNAL(name)                                                                       \
  NEARFAR_EXPORT sighandler_t name(int number, sighandler_t handler) noexcept {                    \
    static auto* const real = reinterpret_cast<Signal*>(dlsym(RTLD_NEXT, #name));                  \
    expect_handler(handler);                                                                       \
    if (program_action(number) != nullptr) return replace(number, handler);                        \
    return real(number, handler);                                                                  \
  }
NEARFAR_SIGNAL(signal)
NEARFAR_SIGNAL(__sysv_signal)
NEARFAR_SIGNAL(sigset)
#undef NEARFAR_SIGNAL

NEARFAR_EXPORT int sigaction(int signal, const struct sigaction* action,
                             struct sigaction* before) noexcept {
  static auto* const real = reinterpret_cast<Action*>(dlsym(RTLD_NEXT, "sigaction"));
  if (action != nullptr) expect_handler(action->sa_handler);
  if (struct sigaction* own = program_action(signal); own != nullptr) {
    const struct sigaction earlier = *own;
    if (action != nullptr) *own = *action;
    if (before != nullptr) *before = earlier;
    return 0;
  }
  if (action == nullptr || !started()) return real(signal, action, before);
  struct sigaction changed = *action;
  keep_ours(changed.sa_mask);
  return real(signal, &changed, before);
}
