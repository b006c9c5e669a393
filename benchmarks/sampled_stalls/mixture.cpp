// Three sites: hot (4 MiB, in cache), warm (96 MiB, random dependent), cold (160 MiB, one read in 16). args: steps(thousands) warm-MiB cold-MiB
#include "common.h"
static uint32_t* make_hot(size_t n) {
  uint32_t* p = (uint32_t*)malloc(n * 4);
  for (size_t i = 0; i < n; i++)
    p[i] = (uint32_t)(i * 2654435761u);
  return p;
}
static uint32_t* make_warm(size_t n) {
  uint32_t* p = (uint32_t*)malloc(n * 4);
  for (size_t i = 0; i < n; i++)
    p[i] = (uint32_t)(i * 2246822519u + 1);
  return p;
}
static uint64_t* make_cold(size_t n) {
  uint64_t* p = (uint64_t*)malloc(n * 8);
  for (size_t i = 0; i < n; i++)
    p[i] = i;
  return p;
}
__attribute__((noinline)) static uint64_t mix(const uint32_t* hot, size_t nh, const uint32_t* warm,
                                              size_t nw, const uint64_t* cold, size_t nc,
                                              size_t steps) {
  Rng r{99};
  uint64_t sum = 0;
  uint32_t x = 1;
  for (size_t i = 0; i < steps; i++) {
    uint64_t k = r();
    for (int j = 0; j < 4; j++)
      x += hot[(x ^ (k >> j)) % nh];
    x ^= warm[(x + k) % nw];
    if ((k & 15) == 0) sum += cold[(k >> 8) % nc];
  }
  return sum + x;
}
int main(int argc, char** argv) {
  size_t steps = arg(argc, argv, 1, 3000) * 1000, w = arg(argc, argv, 2, 96) << 20,
         c = arg(argc, argv, 3, 160) << 20;
  size_t nh = (4 << 20) / 4, nw = w / 4, nc = c / 8;
  printf("%llu\n",
         (unsigned long long)mix(make_hot(nh), nh, make_warm(nw), nw, make_cold(nc), nc, steps));
}
