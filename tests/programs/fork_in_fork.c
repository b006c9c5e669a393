#define _GNU_SOURCE
/* A signal handler forks while fork() is about to block signals. Streams of its child, which goes
 * on with the interrupted fork(), must still be usable by several threads. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t armed, in_handlers_child, handlers_status = -1;

/* In place of libc's: the heap blocks signals by it. */
int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) {
  if (armed && how == SIG_BLOCK) {
    armed = 0;
    raise(SIGUSR1);
  }
  return sigprocmask(how, set, before);
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
