/* How much of a block's copy overlaps with the next one: blocks of a mapped, resident file are
 * copied in random order, back to back or with lfence after each. Between two blocks fio executes
 * more instructions than a core has in flight, which separates them as the fence does.
 * Built by benchmarks/references.py with gcc -O2.
 * Usage: blocks FILE BLOCK_BYTES CPU 0|1 -> ns a block, fastest of five passes; 1: with lfence. */
#define _GNU_SOURCE
#include <emmintrin.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint64_t next_random(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  return *state ^= *state << 17;
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(atoi(argv[3]), &cpus);
  sched_setaffinity(0, sizeof cpus, &cpus);
  const int fd = open(argv[1], O_RDONLY);
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0) return 1;
  const size_t block = strtoul(argv[2], NULL, 10), blocks = (size_t)status.st_size / block;
  const char* file = mmap(NULL, blocks * block, PROT_READ, MAP_SHARED, fd, 0);
  char* buffer = aligned_alloc(4096, block);
  size_t* order = malloc(blocks * sizeof *order);
  if (file == MAP_FAILED || buffer == NULL || order == NULL) return 1;
  uint64_t state = 1;
  for (size_t i = 0; i < blocks; ++i) {
    const size_t j = next_random(&state) % (i + 1);
    order[i] = order[j];
    order[j] = i;
  }
  const int fenced = atoi(argv[4]);
  double fastest = 1e300;
  for (int pass = 0; pass < 6; ++pass) { /* the first one fills the page table */
    const double start = now();
    for (size_t i = 0; i < blocks; ++i) {
      memcpy(buffer, file + order[i] * block, block);
      __asm__ volatile("" ::"r"(buffer) : "memory");
      if (fenced) _mm_lfence();
    }
    const double took = (now() - start) / (double)blocks;
    if (pass > 0 && took < fastest) fastest = took;
  }
  printf("%.2f\n", fastest);
  return 0;
}
