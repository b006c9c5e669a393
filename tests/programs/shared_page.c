// Two threads store to one page: one flushes each of its stores, the other none.
#include <libpmem.h>
#include <pthread.h>
#include <stdint.h>

enum { stores = 20000 };
struct pool {
  _Alignas(64) uint64_t flushed[8];
  _Alignas(64) uint64_t forgotten[8];
};
static volatile struct pool *pool;
static pthread_barrier_t both;

static void *flush(void *unused) {
  (void)unused;
  pthread_barrier_wait(&both);
  for (uint64_t i = 1; i <= stores; ++i) {
    pool->flushed[i % 8] = i; // SITE flushed
    pmem_persist((void *)pool->flushed, sizeof pool->flushed);
  }
  return 0;
}

static void *forget(void *unused) {
  (void)unused;
  pthread_barrier_wait(&both);
  for (uint64_t i = 1; i <= stores; ++i)
    pool->forgotten[i % 8] = i; // SITE forgotten
  return 0;
}

int main(int argc, char **argv) {
  pool = pmem_map_file(argv[argc - 1], 4096, PMEM_FILE_CREATE, 0600, NULL, NULL);
  pthread_t threads[2];
  pthread_barrier_init(&both, NULL, 2);
  pthread_create(&threads[0], NULL, flush, NULL);
  pthread_create(&threads[1], NULL, forget, NULL);
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
  return 0;
}
