#define _GNU_SOURCE
/* Threads that map, resize and unmap memory, a signal handler that does too, and children forked
 * meanwhile. Prints "ok" where all contents were kept. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 3000, HELD = 16, PAGE = 4096, CHILDREN = 60 };
static atomic_int handled;

static void fail(const char* what) {
  fprintf(stderr, "%s\n", what);
  abort();
}

__attribute__((noinline)) char* map(size_t pages) {
  char* p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) fail("mmap");
  return p;
}

static void handle(int number) {
  (void)number;
  char* p = map(3);
  p[PAGE] = 1;
  if (munmap(p, 3 * PAGE) != 0) fail("munmap in the handler");
  atomic_fetch_add(&handled, 1);
}

static void* churn(void* seed) {
  unsigned state = (unsigned)(size_t)seed;
  char* held[HELD] = {0};
  size_t pages[HELD] = {0};
  for (int i = 0; i < ROUNDS; ++i) {
    const int at = rand_r(&state) % HELD;
    const size_t wanted = 1 + (size_t)(rand_r(&state) % 60);
    if (held[at] == NULL) {
      held[at] = map(wanted);
      pages[at] = wanted;
      held[at][0] = (char)at;
    } else if (wanted % 3 == 0 && at % 2 == 0) {
      held[at] = mremap(held[at], pages[at] * PAGE, wanted * PAGE, MREMAP_MAYMOVE);
      if (held[at] == MAP_FAILED) fail("mremap");
      pages[at] = wanted;
    } else if (wanted % 3 == 1 && at % 2 == 1 && pages[at] > 4) {
      if (mmap(held[at] + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        fail("mmap of a part");
      held[at][2 * PAGE] = 3;
    } else {
      if (held[at][0] != (char)at) fail("contents");
      if (munmap(held[at], pages[at] * PAGE) != 0) fail("munmap");
      held[at] = NULL;
    }
  }
  return NULL;
}

int main(void) {
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval often = {{0, 500}, {0, 500}};
  setitimer(ITIMER_REAL, &often, NULL);
  pthread_t threads[THREADS];
  for (size_t i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, churn, (void*)(i + 1));
  for (int i = 0; i < CHILDREN; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      char* p = map(10);
      p[0] = 1;
      munmap(p, 10 * PAGE);
      _exit(0);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) fail("child");
  }
  for (size_t i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  while (atomic_load(&handled) == 0) usleep(1000);
  const struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &never, NULL);
  puts("ok");
  return 0;
}
