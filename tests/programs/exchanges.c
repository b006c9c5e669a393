// Each compare-and-swap as clang calls it, at a line of its own, into the pool. Argument: POOL.
#include <libpmem.h>
#include <stddef.h>
#include <stdint.h>

typedef unsigned __int128 wide;
#define EXCHANGE(bits, type)                                                                       \
  type __tsan_atomic##bits##_compare_exchange_val(volatile type *, type, type, int, int);
EXCHANGE(8, uint8_t)
EXCHANGE(16, uint16_t)
EXCHANGE(32, uint32_t)
EXCHANGE(64, uint64_t)
EXCHANGE(128, wide)

int main(int argc, char **argv) {
  char *pool = pmem_map_file(argv[argc - 1], 4096, PMEM_FILE_CREATE, 0600, NULL, NULL);
  if (pool == NULL) return 1;
  __tsan_atomic8_compare_exchange_val((uint8_t *)pool, 0, 1, 5, 5);             // SWAP
  __tsan_atomic16_compare_exchange_val((uint16_t *)(pool + 64), 0, 1, 5, 5);   // SWAP
  __tsan_atomic32_compare_exchange_val((uint32_t *)(pool + 128), 0, 1, 5, 5);  // SWAP
  __tsan_atomic64_compare_exchange_val((uint64_t *)(pool + 192), 0, 1, 5, 5);  // SWAP
  __tsan_atomic128_compare_exchange_val((wide *)(pool + 256), 0, 1, 5, 5);     // SWAP
  return 0;
}
