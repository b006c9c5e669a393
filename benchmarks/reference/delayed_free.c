// The least that delaying frees can cost: blocks are kept in two arrays, as a quarantine keeps them,
// but nothing is checked. Prints ns a pair of free and malloc for 4,096 live blocks of 1 to 512 bytes,
// as in the warm loop of `nearfar bench malloc`.
// Usage: delayed_free KEPT PAIRS; KEPT: blocks in each of the two arrays, 0 for none
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { live = 4096, most_kept = 4096 };
static void* blocks[live];
static void* kept[2][most_kept];
static size_t count, filling, capacity;

static inline void delayed_free(void* block) {
  if (capacity == 0) {
    free(block);
    return;
  }
  if (count == capacity) {
    filling = 1 - filling;
    for (size_t i = 0; i < capacity; ++i)
      free(kept[filling][i]);
    count = 0;
  }
  kept[filling][count++] = block;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  capacity = strtoul(argv[1], NULL, 10);
  const unsigned long pairs = strtoul(argv[2], NULL, 10);
  if (capacity > most_kept || pairs == 0) return 2;
  uint64_t random = 88172645463325252;
  struct timespec begin = {0}, end;
  for (unsigned long i = 0; i < pairs + live; ++i) { // the first ones fill the heap
    if (i == live) clock_gettime(CLOCK_MONOTONIC, &begin);
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    void** block = &blocks[i < live ? i : random % live];
    if (*block != NULL) delayed_free(*block);
    *block = malloc(1 + (random >> 32) % 512);
    if (*block == NULL) return 1;
    *(volatile char*)*block = 1;
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  const double ns = (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
  printf("%.3f\n", ns / (double)pairs);
  return 0;
}
