#include <time.h>

#include "soak.h"

/* The finalizer of splitmix64: numbers that follow each other share no bits. */
static uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

struct random random_of(uint64_t seed) { return (struct random){mix(seed)}; }
struct random new_random(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return random_of((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
}
uint64_t next_random(struct random* random) { return mix(random->state += 0x9E3779B97F4A7C15u); }
uint64_t random_below(struct random* random, uint64_t limit) { return next_random(random) % limit; }
bool once_in(struct random* random, uint64_t times) { return random_below(random, times) == 0; }
