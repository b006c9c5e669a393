/* What recording costs: appends of three stores and two flushes with fence each to a pool in memory.
 *
 * Usage   crash_appends POOL COUNT; prints nanoseconds of processor time an append
 * Build   gcc -O2 -g [-fsanitize=thread -c, linked with the recorder instead] -lpmem */
#include <libpmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { slots = 1 << 14 };
struct entry {
  uint64_t value, check;
};
struct journal {
  uint64_t count, padding[7];
  struct entry entry[slots];
};

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  struct journal *j = pmem_map_file(arguments[1], sizeof *j, PMEM_FILE_CREATE, 0600, NULL, NULL);
  if (j == NULL) return 1;
  const uint64_t appends = strtoull(arguments[2], NULL, 10);
  for (uint64_t i = 0; i < slots; ++i) /* its pages are there */
    j->entry[i].value = i;
  const double start = now();
  for (uint64_t i = 0; i < appends; ++i) {
    struct entry *e = &j->entry[j->count % slots];
    e->value = i;
    e->check = ~i;
    pmem_persist(e, sizeof *e);
    j->count++;
    pmem_persist(&j->count, sizeof j->count);
  }
  printf("%.2f\n", (now() - start) / (double)appends);
  return 0;
}
