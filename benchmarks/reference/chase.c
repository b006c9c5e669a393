/* An independent pointer chase to compare the latency probe with: Sattolo's cycle of volatile
 * pointers, 64-byte blocks, 4 KiB or transparent huge pages.
 * Built by benchmarks/references.py with gcc -O2.
 * Usage: chase REGION_BYTES CPU 4k|thp SAMPLES -> median ns a load, one line. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

struct block {
  struct block* volatile next;
  char rest[64 - sizeof(void*)];
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ascending(const void* x, const void* y) {
  const double a = *(const double*)x, b = *(const double*)y;
  return (a > b) - (a < b);
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const size_t n = strtoul(argv[1], NULL, 10) / sizeof(struct block);
  const int samples = atoi(argv[4]);
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(atoi(argv[2]), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) return 3;
  const size_t huge = 2u << 20, bytes = (n * sizeof(struct block) + huge - 1) / huge * huge;
  struct block* x = aligned_alloc(huge, bytes);
  if (!x) return 3;
  madvise(x, bytes, strcmp(argv[3], "thp") == 0 ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  for (size_t i = 0; i < n; i++) x[i].next = &x[i];
  uint64_t r = 88172645463325252u; /* xorshift64 */
  for (size_t i = n - 1; i > 0; i--) {
    r ^= r << 13, r ^= r >> 7, r ^= r << 17;
    const size_t j = r % i;
    struct block* const t = x[i].next;
    x[i].next = x[j].next;
    x[j].next = t;
  }
  struct block* at = x;
  const size_t warm = 2 * n < 1000000 ? 2 * n : 1000000;
  for (size_t i = 0; i < warm; i++) at = at->next;
  double* ns = malloc(sizeof *ns * (size_t)samples);
  size_t steps = 4096;
  for (int k = -1; k < samples; k++) { /* the first one sets the length of the others: 2 ms */
    const double start = now();
    for (size_t i = 0; i < steps; i++) at = at->next;
    const double each = (now() - start) / (double)steps;
    if (k >= 0) ns[k] = each;
    if (k < 0) steps = (size_t)(2e6 / each) + 1;
  }
  qsort(ns, (size_t)samples, sizeof *ns, ascending);
  printf("%.4f %p\n", ns[samples / 2], (void*)at);
  return 0;
}
