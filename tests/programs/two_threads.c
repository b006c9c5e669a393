// Thread 1 publishes a value, thread 2 reads it. A reader that has seen the value may rely on it,
// but it is visible before it is durable. With FIX, the writer sets a flag once it is.
#include <libpmem.h>
#include <nearfar/crash_intrinsics.h>
#include <pthread.h>
#include <stdint.h>

struct pool {
  _Alignas(64) uint64_t value;
  _Alignas(64) uint64_t unrelated;
};
static volatile struct pool *pool;
static volatile int durable;

static void *write_value(void *unused) {
  (void)unused;
  nearfar_crash_begin(1);
  pool->unrelated = 1;
  pmem_persist((void *)&pool->unrelated, 8);
  pool->value = 7; // visible from here
  pmem_persist((void *)&pool->value, 8);
  durable = 1;
  nearfar_crash_end(1);
  return 0;
}

static void *read_value(void *unused) {
  (void)unused;
  nearfar_crash_begin(2);
#ifdef FIX
  const int seen = durable && pool->value == 7;
#else
  const int seen = pool->value == 7;
#endif
  nearfar_crash_end(seen ? 2 : 3);
  return 0;
}

int main(int argc, char **argv) {
  pool = pmem_map_file(argv[argc - 1], sizeof *pool, PMEM_FILE_CREATE, 0600, NULL, NULL);
  if (pool == NULL)
    return 1;
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, write_value, NULL);
  pthread_create(&threads[1], NULL, read_value, NULL);
  for (int i = 0; i < 2; ++i)
    pthread_join(threads[i], NULL);
  return 0;
}
