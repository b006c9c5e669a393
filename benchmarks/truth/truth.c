/* The three programs by which simulated time is judged: a pointer chase, STREAM's triad, random
 * updates (GUPS). Built by benchmarks/truth.py with gcc -O3.
 * Usage: truth chase|stream|gups BYTES STEPS 4k|thp [check]
 * Prints of the STEPS: nanoseconds, those on the processor, involuntary switches; the share of memory
 * on huge pages; a checksum. A step is a load, a triad over all three arrays, an update. What comes
 * before is not timed, nor is the check of what they did, all of it: 4 ends a run that did wrong. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

struct block {
  struct block* volatile next;
  char rest[64 - sizeof(void*)];
};

static uint64_t state = 88172645463325252u; /* xorshift64 */
static inline uint64_t next(void) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state;
}

struct took {
  double wall_ns, cpu_ns;
  long switches;
};

static double clock_ns(clockid_t which) {
  struct timespec t;
  clock_gettime(which, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct took now(void) {
  struct rusage used;
  getrusage(RUSAGE_THREAD, &used);
  return (struct took){clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_THREAD_CPUTIME_ID), used.ru_nivcsw};
}

static struct took since(struct took start) {
  const struct took end = now();
  return (struct took){end.wall_ns - start.wall_ns, end.cpu_ns - start.cpu_ns,
                       end.switches - start.switches};
}

static void expect(int right) {
  if (!right) exit(4);
}

/* Sattolo's cycle over all blocks. Checked: from where the steps end it is as far as it must be to
 * where they began, and no nearer. */
static struct took chase(void* memory, size_t bytes, size_t steps, int check, uint64_t* sum) {
  struct block* x = memory;
  const size_t n = bytes / sizeof *x;
  for (size_t i = 0; i < n; i++) x[i].next = &x[i];
  for (size_t i = n - 1; i > 0; i--) {
    const size_t j = next() % i;
    struct block* const t = x[i].next;
    x[i].next = x[j].next;
    x[j].next = t;
  }
  struct block* at = x;
  const struct took start = now();
  for (size_t i = 0; i < steps; i++) at = at->next;
  const struct took took = since(start);
  *sum = (uint64_t)(at - x);
  if (check) {
    size_t left = 0;
    for (struct block* b = at; b != x || left == 0; b = b->next) left++;
    expect(left == n - steps % n);
  }
  return took;
}

/* Checked: every element of the sum. */
static struct took stream(void* memory, size_t bytes, size_t steps, int check, uint64_t* sum) {
  const size_t n = bytes / (3 * sizeof(double)) / 8 * 8;
  double* restrict a = memory;
  double* restrict b = a + n;
  double* restrict c = b + n;
  for (size_t i = 0; i < n; i++) a[i] = 0, b[i] = 1, c[i] = (double)(i % 7);
  const double s = 0.41421356237309503;
  const struct took start = now();
  for (size_t k = 0; k < steps; k++) {
    for (size_t i = 0; i < n; i++) a[i] = b[i] + s * c[i];
    __asm__ volatile("" : : "r"(a), "r"(b), "r"(c) : "memory");
  }
  const struct took took = since(start);
  *sum = (uint64_t)(a[n / 2] * 1000);
  for (size_t i = 0; check && i < n; i++) {
    const double off = a[i] - (1 + s * (double)(i % 7));
    expect(off < 1e-12 && off > -1e-12);
  }
  return took;
}

/* Checked as HPC Challenge does: the same updates once more undo them all. */
static struct took gups(void* memory, size_t bytes, size_t steps, int check, uint64_t* sum) {
  uint64_t* table = memory;
  const size_t mask = bytes / sizeof *table - 1; /* BYTES is a power of two */
  for (size_t i = 0; i <= mask; i++) table[i] = i;
  const uint64_t first = state;
  const struct took start = now();
  for (size_t i = 0; i < steps; i++) {
    const uint64_t r = next();
    table[r & mask] ^= r;
  }
  const struct took took = since(start);
  *sum = table[next() & mask];
  if (check) {
    state = first;
    for (size_t i = 0; i < steps; i++) {
      const uint64_t r = next();
      table[r & mask] ^= r;
    }
    for (size_t i = 0; i <= mask; i++) expect(table[i] == i);
  }
  return took;
}

/* Of this process, in bytes. */
static double huge_bytes(void) {
  FILE* file = fopen("/proc/self/smaps_rollup", "r");
  char line[256];
  double kib = 0;
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "AnonHugePages: %lf kB", &kib) == 1) break;
  if (file) fclose(file);
  return kib * 1024;
}

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6) return 2;
  const int check = argc == 6;
  const size_t bytes = strtoul(argv[2], NULL, 10), steps = strtoul(argv[3], NULL, 10);
  const size_t huge = 2u << 20;
  char* mapped = mmap(NULL, bytes + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return 3;
  char* memory = mapped + (huge - (uintptr_t)mapped % huge) % huge;
  madvise(memory, bytes, strcmp(argv[4], "thp") == 0 ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  uint64_t sum = 0;
  struct took took;
  if (strcmp(argv[1], "chase") == 0)
    took = chase(memory, bytes, steps, check, &sum);
  else if (strcmp(argv[1], "stream") == 0)
    took = stream(memory, bytes, steps, check, &sum);
  else
    took = gups(memory, bytes, steps, check, &sum);
  printf("%.0f %.0f %ld %.3f %llu\n", took.wall_ns, took.cpu_ns, took.switches,
         huge_bytes() / (double)bytes, (unsigned long long)sum);
  return 0;
}
