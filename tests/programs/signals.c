/* A signal handler stores to the pool while the program does, and so interrupts the recorder. */
#include <libpmem.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/time.h>

enum { wanted = 300 };
static volatile uint64_t *pool;

static void on_alarm(int number) {
  (void)number;
  if (pool[8] == wanted) return;
  pool[8] = pool[8] + 1;
  pmem_persist((const void *)&pool[8], 8);
}

int main(int count, char **arguments) {
  pool = pmem_map_file(arguments[count - 1], 4096, PMEM_FILE_CREATE, 0600, NULL, NULL);
  if (pool == NULL) return 1;
  const struct itimerval often = {{0, 200}, {0, 200}};
  signal(SIGALRM, on_alarm);
  setitimer(ITIMER_REAL, &often, NULL);
  while (pool[8] < wanted) {
    pool[0] = pool[0] + 1;
    pmem_persist((const void *)&pool[0], 8);
  }
  return 0;
}
