/* The three programs by which simulated time is judged: a pointer chase, STREAM's triad, random
 * updates (GUPS). Built by benchmarks/truth.py with gcc -O3.
 * Usage: truth chase|stream|gups BYTES STEPS 4k|thp -> nanoseconds of the STEPS, a checksum
 * A step is a load, a triad over all three arrays, an update. What comes before is not timed. */
#define _GNU_SOURCE
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

static uint64_t state = 88172645463325252u; /* xorshift64 */
static inline uint64_t next(void) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Sattolo's cycle over all blocks. */
static double chase(void* memory, size_t bytes, size_t steps, uint64_t* sum) {
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
  const double start = now();
  for (size_t i = 0; i < steps; i++) at = at->next;
  *sum = (uint64_t)(at - x);
  return now() - start;
}

static double stream(void* memory, size_t bytes, size_t steps, uint64_t* sum) {
  const size_t n = bytes / (3 * sizeof(double)) / 8 * 8;
  double* restrict a = memory;
  double* restrict b = a + n;
  double* restrict c = b + n;
  for (size_t i = 0; i < n; i++) a[i] = 0, b[i] = 1, c[i] = (double)(i % 7);
  const double s = 0.41421356237309503, start = now();
  for (size_t k = 0; k < steps; k++) {
    for (size_t i = 0; i < n; i++) a[i] = b[i] + s * c[i];
    __asm__ volatile("" : : "r"(a), "r"(b), "r"(c) : "memory");
  }
  const double took = now() - start;
  *sum = (uint64_t)(a[n / 2] * 1000);
  return took;
}

static double gups(void* memory, size_t bytes, size_t steps, uint64_t* sum) {
  uint64_t* table = memory;
  const size_t mask = bytes / sizeof *table - 1; /* BYTES is a power of two */
  for (size_t i = 0; i <= mask; i++) table[i] = i;
  const double start = now();
  for (size_t i = 0; i < steps; i++) {
    const uint64_t r = next();
    table[r & mask] ^= r;
  }
  const double took = now() - start;
  *sum = table[next() & mask];
  return took;
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const size_t bytes = strtoul(argv[2], NULL, 10), steps = strtoul(argv[3], NULL, 10);
  const size_t huge = 2u << 20;
  char* mapped = mmap(NULL, bytes + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return 3;
  char* memory = mapped + (huge - (uintptr_t)mapped % huge) % huge;
  madvise(memory, bytes, strcmp(argv[4], "thp") == 0 ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  uint64_t sum = 0;
  double took;
  if (strcmp(argv[1], "chase") == 0)
    took = chase(memory, bytes, steps, &sum);
  else if (strcmp(argv[1], "stream") == 0)
    took = stream(memory, bytes, steps, &sum);
  else
    took = gups(memory, bytes, steps, &sum);
  printf("%.0f %llu\n", took, (unsigned long long)sum);
  return 0;
}
