// A program that uses CPU time in known functions, in a thread and in a child, and has a handler of
// SIGPROF.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include "alloclog/test_programs/report.h"

static volatile sig_atomic_t handled = 0;

static void handler(int number) { handled += number == SIGPROF; }

#define BURN(name)                                                                                 \
  ALLOCATES void name(void) {                                                                      \
    struct timespec used = {0, 0};                                                                 \
    while (used.tv_sec == 0 && used.tv_nsec < 300000000) {                                         \
      for (volatile long i = 0; i < 1000000; ++i)                                                  \
        ;                                                                                          \
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);                                               \
    }                                                                                              \
  }
BURN(in_main)
BURN(in_thread)
BURN(in_child)

static void* threaded(void* unused) {
  in_thread();
  return unused;
}

int main(void) {
  struct sigaction action = {.sa_handler = handler};
  struct sigaction before;
  free(malloc(100)); // joins the log
  if (sigaction(SIGPROF, &action, &before) != 0 || before.sa_handler != SIG_DFL) return 4;
  pthread_t thread;
  if (pthread_create(&thread, NULL, threaded, NULL) != 0) return 5;
  pthread_join(thread, NULL);
  in_main();
  raise(SIGPROF);
  if (fork() == 0) {
    free(malloc(100));
    in_child();
    raise(SIGPROF);
    _exit(handled == 2 ? 0 : 6);
  }
  int status = 0;
  if (wait(&status) < 0 || status != 0 || handled != 1) return 7;
  if (signal(SIGPROF, SIG_IGN) != handler) return 8;
  raise(SIGPROF);
  report("main", NULL, in_main);
  report("thread", NULL, in_thread);
  report("child", NULL, in_child);
  show();
  signal(SIGPROF, SIG_DFL);
  raise(SIGPROF);
  return 9;
}
