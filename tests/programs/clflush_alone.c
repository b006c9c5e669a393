/* A clflush needs no fence; all stores to the pool are libpmem's but one. */
#include <emmintrin.h>
#include <libpmem.h>

int main(int argc, char **argv) {
  (void)argc;
  char *pool = pmem_map_file(argv[1], 4096, PMEM_FILE_CREATE, 0600, NULL, NULL);
  if (pool == NULL) return 2;
  pmem_memset_persist(pool, 1, 64);
#ifdef STORE
  pool[128] = 1;
  _mm_clflush(pool + 128);
#endif
  return 0;
}
