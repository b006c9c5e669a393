/* Work that misses no cache: its time shows how much of the CPU the program has.
 * argv[1] million rounds of a table of 16 KiB, a branch that is hard to guess, and arithmetic. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  static uint32_t table[4096];
  const uint64_t rounds = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1) * 1000000;
  uint64_t state = 88172645463325252u, sum = 0;
  for (unsigned i = 0; i < 4096; ++i) table[i] = i * 2654435761u;
  for (uint64_t i = 0; i < rounds; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    const uint32_t found = table[state & 4095];
    if (found & 1)
      sum += found;
    else
      table[(state >> 12) & 4095] = (uint32_t)sum | 1;
    if ((i & 4095) == 0) table[i >> 12 & 4095] &= ~1u;
  }
  printf("%llu\n", (unsigned long long)sum);
  return 0;
}
