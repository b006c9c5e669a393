#define _GNU_SOURCE
/* Threads that map, resize and unmap memory, while the first one makes children that no fork handler
 * prepares: by the system call fork(), as _Fork() does. Each child maps, resizes and unmaps memory,
 * moves the break, and forks in turn. Prints how many children did not end in time. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3, CHILDREN = 200, BYTES = 1 << 16, PATIENCE_MS = 20000 };
static atomic_int done;

static char* map(size_t bytes) {
  return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void* churn(void* unused) {
  while (!atomic_load(&done)) {
    char* p = map(BYTES);
    p = mremap(p, BYTES, 2 * BYTES, MREMAP_MAYMOVE);
    munmap(p, 2 * BYTES);
  }
  return unused;
}

static int work(void) {
  char* p = map(BYTES);
  p[0] = 1;
  p = mremap(p, BYTES, 2 * BYTES, MREMAP_MAYMOVE);
  if (p == MAP_FAILED || p[0] != 1 || munmap(p, 2 * BYTES) != 0 || brk(sbrk(0)) != 0) return 1;
  const pid_t child = (pid_t)syscall(SYS_fork);
  if (child == 0) _exit(munmap(map(BYTES), BYTES));
  int status = -1;
  return waitpid(child, &status, 0) == child ? status : 1;
}

/* Whether the child ended in time, with code 0. */
static int ends(pid_t child) {
  const struct timespec pause = {0, 1000000};
  int status = -1;
  for (int i = 0; i < PATIENCE_MS; ++i) {
    if (waitpid(child, &status, WNOHANG) == child) return status == 0;
    nanosleep(&pause, NULL);
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return 0;
}

int main(void) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, churn, NULL);
  int failed = 0;
  for (int i = 0; i < CHILDREN && failed == 0; ++i) {
    const pid_t child = (pid_t)syscall(SYS_fork);
    if (child == 0) _exit(work());
    failed += !ends(child);
  }
  atomic_store(&done, 1);
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  printf("%d\n", failed);
  return 0;
}
