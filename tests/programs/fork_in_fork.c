#define _GNU_SOURCE
/* A signal handler forks while fork() is about to block signals. Streams of its child, which goes
 * on with the interrupted fork(), must still be usable by several threads. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t armed, in_handlers_child, handlers_status = -1;

/* In place of libc's: the heap blocks signals by it. */
long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  const long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
  register long d __asm__("r10") = va_arg(list, long);
  register long e __asm__("r8") = va_arg(list, long);
  register long f __asm__("r9") = va_arg(list, long);
  va_end(list);
  if (armed && number == SYS_rt_sigprocmask && a == SIG_BLOCK) {
    armed = 0;
    raise(SIGUSR1);
  }
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(d), "r"(e), "r"(f)
                   : "rcx", "r11", "memory");
  if (result >= 0 || result < -4095) return result;
  errno = (int)-result;
  return -1;
}

static void fork_here(int number) {
  const pid_t child = fork();
  int status = number;
  if (child == 0) {
    in_handlers_child = 1;
    alarm(20);
  } else if (waitpid(child, &status, 0) == child) {
    handlers_status = status;
  }
}

static void* flush_all(void* unused) {
  fflush(NULL);
  return unused;
}

static void wait_for_child(pid_t child) {
  if (child == 0) _exit(0);
  int status = 1;
  if (waitpid(child, &status, 0) != child || status != 0) abort();
}

int main(void) {
  free(malloc(100));
  signal(SIGUSR1, fork_here);
  pthread_t thread;
  if (pthread_create(&thread, NULL, flush_all, NULL) != 0) return 1;
  pthread_join(thread, NULL);
  armed = 1;
  wait_for_child(fork());
  if (in_handlers_child) {
    if (pthread_create(&thread, NULL, flush_all, NULL) != 0) _exit(1);
    pthread_join(thread, NULL);
    fflush(NULL);
    _exit(0);
  }
  printf("%d\n", (int)handlers_status);
  return 0;
}
