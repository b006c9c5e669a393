// Independent random look-ups in a 512 MiB table. args: MiB look-ups(thousands)
#include "common.h"
__attribute__((noinline)) static uint64_t look_up(const uint64_t* table, size_t mask, size_t n) {
  Rng r{7};
  uint64_t sum = 0;
  for (size_t i = 0; i < n; i++)
    sum += table[r() & mask];
  return sum;
}
int main(int argc, char** argv) {
  size_t n = arg(argc, argv, 1, 512) * (1 << 20) / 8, lookups = arg(argc, argv, 2, 60000) * 1000;
  uint64_t* table = (uint64_t*)malloc(n * 8);
  for (size_t i = 0; i < n; i++)
    table[i] = i * 0x9e3779b97f4a7c15ull;
  printf("%llu\n", (unsigned long long)look_up(table, n - 1, lookups));
}
