/* Threads that make no step are reported with their phase and stack. */
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "soak.h"

struct shared* shared;
_Thread_local struct actor* me;
bool is_child;

static unsigned limit_s;
static _Atomic int stacks_written;

/* Writes without stdio, whose locks a hanging thread may hold. */
static void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
static void say_with(const char* format, va_list values) {
  char text[400];
  int length = vsnprintf(text, sizeof text, format, values);
  if (length > (int)sizeof text - 1) length = sizeof text - 1;
  if (length > 0 && write(2, text, (size_t)length) < 0) return;
}
static void say(const char* format, ...) {
  va_list values;
  va_start(values, format);
  say_with(format, values);
  va_end(values);
}

static void write_stack(int signal) {
  (void)signal;
  void* frames[60];
  backtrace_symbols_fd(frames, backtrace(frames, 60), 2);
  atomic_fetch_add(&stacks_written, 1);
}

static void write_last_stack(int signal) {
  say("signal %d in %s %d, %s\n", signal, is_child ? "child" : "process", getpid(),
      me == NULL ? "no phase"
      : is_child ? me->child_phase
                 : me->phase);
  write_stack(signal);
  raise(signal); /* its handler is reset */
}

void fail(const char* format, ...) {
  va_list values;
  va_start(values, format);
  say("soak failed: ");
  say_with(format, values);
  va_end(values);
  say("\n");
  abort();
}

void open_watchdog(unsigned seconds) {
  limit_s = seconds;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) abort();
  void* frame;
  backtrace(&frame, 1); /* the first call loads a library */
  struct sigaction action = {.sa_handler = write_stack, .sa_flags = SA_RESTART};
  sigaction(SIGUSR2, &action, NULL);
  action = (struct sigaction){.sa_handler = write_last_stack, .sa_flags = SA_RESETHAND};
  static const int fatal[] = {SIGABRT, SIGSEGV, SIGBUS};
  for (int i = 0; i < 3; ++i)
    sigaction(fatal[i], &action, NULL);
}

const char* enter(const char* phase) {
  const char* before = atomic_exchange(is_child ? &me->child_phase : &me->phase, phase);
  atomic_fetch_add(&me->steps, 1);
  return before;
}

static void say_kernel_stack(int process, int thread) {
  static const char* const files[] = {"wchan", "syscall"};
  for (int i = 0; i < 2; ++i) {
    char path[80], text[200];
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", process, thread, files[i]);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    text[length > 0 ? length : 0] = '\0';
    say("  %s %s\n", files[i], text);
  }
}

/* A thread that is inside fork() blocks the signal and writes no stack. */
static void report(int place) {
  struct actor* actor = &shared->actors[place];
  const int thread = atomic_load(&actor->thread);
  const int child = atomic_load(&actor->child);
  const char* phase = atomic_load(&actor->phase);
  say("actor %d, thread %d: %s\n", place, thread, phase != NULL ? phase : "not started");
  if (thread == 0) return;
  const int before = atomic_load(&stacks_written);
  say_kernel_stack(getpid(), thread);
  syscall(SYS_tgkill, getpid(), thread, SIGUSR2);
  for (int i = 0; i < 100 && atomic_load(&stacks_written) == before; ++i)
    usleep(10000);
  if (child == 0) return;
  phase = atomic_load(&actor->child_phase);
  say("its child %d: %s\n", child, phase != NULL ? phase : "not started");
  say_kernel_stack(child, child);
  kill(child, SIGUSR2);
  usleep(300000);
}

void watch(void) {
  static uint64_t seen[actor_count];
  static time_t since[actor_count];
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  for (int i = 0; i < actor_count; ++i) {
    struct actor* actor = &shared->actors[i];
    const uint64_t steps = atomic_load(&actor->steps);
    if (steps != seen[i] || since[i] == 0 || atomic_load(&actor->thread) == 0) {
      seen[i] = steps;
      since[i] = now.tv_sec;
    } else if (now.tv_sec - since[i] > (time_t)limit_s) {
      say("soak hangs: actor %d has made no step for %u s\n", i, limit_s);
      for (int k = 0; k < actor_count; ++k)
        report(k);
      abort();
    }
  }
}
