#include "alloclog/preload/clock.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <iterator>
#include <pthread.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "alloclog/preload/state.hpp"
#include "base/next_malloc.hpp"

namespace nearfar::alloclog {

namespace {

/// The kernel's timers are numbered from 0; a key has a value only if it is not null.
using TimerNumber = std::intptr_t;

struct {
  std::uint32_t period_ns; ///< 0: the clock does not run
  pthread_key_t timer;     ///< of a thread, by number + 1
  bool has_key;
} constinit process_clock{};

/// The program's own action for the signal.
constinit struct sigaction program_action {};

constexpr int numbers[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                           REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

void write_sample(const siginfo_t& info, const ucontext_t& context) {
  const std::uint64_t number =
      std::atomic_ref(header().clock_count).fetch_add(1, std::memory_order_relaxed) + 1;
  ClockSample& sample =
      reinterpret_cast<ClockSample*>(state.slot + clock_offset)[number % clock_samples];
  std::atomic_ref(sample.number).store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  sample.time_ns = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
                   static_cast<std::uint64_t>(now.tv_nsec);
  sample.thread = static_cast<std::uint32_t>(info.si_value.sival_int);
  sample.period_ns =
      process_clock.period_ns * (1 + static_cast<std::uint32_t>(std::max(info.si_overrun, 0)));
  sample.instruction = static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RIP]);
  for (std::size_t i = 0; i < std::size(numbers); ++i)
    sample.registers[i] = static_cast<std::uint64_t>(context.uc_mcontext.gregs[numbers[i]]);
  std::atomic_ref(sample.number).store(number, std::memory_order_release);
}

/// The function that the program would call without this library; nullptr if there is none.
template <class Function>
Function* next_function(Function*& found, const char* name) {
  Function* known = __atomic_load_n(&found, __ATOMIC_RELAXED);
  if (known == nullptr) {
    known = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
    __atomic_store_n(&found, known, __ATOMIC_RELAXED);
  }
  return known;
}

int library_sigaction(int signal, const struct sigaction* action, struct sigaction* before) {
  using Function = int(int, const struct sigaction*, struct sigaction*);
  static constinit Function* found = nullptr;
  if (Function* next = next_function(found, "sigaction")) return next(signal, action, before);
  errno = ENOSYS;
  return -1;
}

/// Performs the program's action for a SIGPROF of another process, or of a timer of its own.
void pass_on(int signal, siginfo_t* info, void* context) {
  const struct sigaction action = program_action;
  if ((action.sa_flags & SA_SIGINFO) != 0) return action.sa_sigaction(signal, info, context);
  if (action.sa_handler == SIG_IGN) return;
  if (action.sa_handler != SIG_DFL) return action.sa_handler(signal);
  library_sigaction(SIGPROF, &action, nullptr); // ends the process when this handler returns
  raise(SIGPROF);
}

void handle(int signal, siginfo_t* info, void* context) {
  const bool is_ours = info->si_code == SI_TIMER && info->si_value.sival_int != 0 &&
                       info->si_value.sival_int == static_cast<int>(gettid());
  if (!is_ours) return pass_on(signal, info, context);
  if (__atomic_load_n(&state.level0, __ATOMIC_ACQUIRE) == nullptr) return;
  const int saved_errno = errno;
  write_sample(*info, *static_cast<const ucontext_t*>(context));
  errno = saved_errno;
}

/// Starts a timer of the calling thread's CPU time in user mode; -1 if the kernel refuses.
TimerNumber start_timer() {
  constexpr clockid_t user_time = -3; // CPUCLOCK_VIRT of the calling thread (linux/posix-timers.h)
  const pid_t thread = gettid();
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGPROF;
  event.sigev_value.sival_int = thread;
  event._sigev_un._tid = thread;
  int number = -1;
  if (syscall(SYS_timer_create, user_time, &event, &number) != 0) return -1;
  const timespec period{0, static_cast<long>(process_clock.period_ns)};
  const itimerspec each{period, period};
  syscall(SYS_timer_settime, number, 0, &each, nullptr);
  return number;
}

void delete_timer(void* number_plus_1) {
  syscall(SYS_timer_delete, static_cast<int>(reinterpret_cast<TimerNumber>(number_plus_1) - 1));
}

struct ThreadStart {
  void* (*function)(void*);
  void* argument;
};

void* run_thread(void* given) {
  const ThreadStart start = *static_cast<ThreadStart*>(given);
  next_malloc().free(given);
  const int saved_errno = errno;
  const TimerNumber number = start_timer();
  if (number >= 0) pthread_setspecific(process_clock.timer, reinterpret_cast<void*>(number + 1));
  errno = saved_errno;
  return start.function(start.argument);
}

bool is_running() { return __atomic_load_n(&process_clock.period_ns, __ATOMIC_ACQUIRE) != 0; }

int create_thread(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                  void* argument) {
  using Function = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static constinit Function* found = nullptr;
  Function* create = next_function(found, "pthread_create");
  if (create == nullptr) return EAGAIN;
  if (!is_running() || !process_clock.has_key)
    return create(thread, attributes, function, argument);
  auto* start = static_cast<ThreadStart*>(next_malloc().malloc(sizeof(ThreadStart)));
  if (start == nullptr) return EAGAIN;
  *start = {function, argument};
  const int result = create(thread, attributes, run_thread, start);
  if (result != 0) next_malloc().free(start);
  return result;
}

/// Sets the program's action for SIGPROF; the handler of this library stays.
void set_program_action(const struct sigaction* action, struct sigaction* before) {
  if (before != nullptr) *before = program_action;
  if (action != nullptr) program_action = *action;
}

} // namespace

void start_clock(std::uint32_t period_ns) {
  struct sigaction ours {};
  ours.sa_sigaction = handle;
  // On the stack that the thread gives to signals, if any: those of Go's threads are small.
  ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  if (!is_running()) { // not the child of a process whose clock runs, which has the handler
    if (library_sigaction(SIGPROF, &ours, &program_action) != 0) return;
    process_clock.has_key = pthread_key_create(&process_clock.timer, delete_timer) == 0;
    __atomic_store_n(&process_clock.period_ns, period_ns, __ATOMIC_RELEASE);
  }
  start_timer();
}

} // namespace nearfar::alloclog

#define NEARFAR_ENTRY_POINT __attribute__((visibility("default"), used))

extern "C" {

NEARFAR_ENTRY_POINT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                       void* (*function)(void*), void* argument) noexcept {
  return nearfar::alloclog::create_thread(thread, attributes, function, argument);
}

NEARFAR_ENTRY_POINT int sigaction(int number, const struct sigaction* action,
                                  struct sigaction* before) noexcept {
  using namespace nearfar::alloclog;
  if (number != SIGPROF || !is_running()) return library_sigaction(number, action, before);
  set_program_action(action, before);
  return 0;
}

NEARFAR_ENTRY_POINT sighandler_t signal(int number, sighandler_t handler) noexcept {
  using namespace nearfar::alloclog;
  using Function = sighandler_t(int, sighandler_t);
  static constinit Function* found = nullptr;
  if (number != SIGPROF || !is_running()) {
    Function* next = next_function(found, "signal");
    return next != nullptr ? next(number, handler) : SIG_ERR;
  }
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  set_program_action(&action, &before);
  return before.sa_handler;
}
}
