/* Threads count in the pool, the file argv[1], with atomic operations: in one counter, in words of one
 * line, and as the largest number seen. Each persists what it has changed. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <libpmem.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 8192, THREADS = 4 };

static struct {
  _Atomic long count;
  _Atomic long largest;
  long old_style;
  _Alignas(64) long words[THREADS];
  _Alignas(64) _Atomic unsigned char bytes[64];
}* pool;
static long times;

static void* work(void* argument) {
  const long number = (long)argument;
  for (long i = 0; i < times; ++i) {
    atomic_fetch_add(&pool->count, 1);
    pmem_persist(&pool->count, sizeof pool->count);
    long seen = atomic_load(&pool->largest);
    while (seen < i && !atomic_compare_exchange_weak(&pool->largest, &seen, i)) {
    }
    pmem_persist(&pool->largest, sizeof pool->largest);
    __sync_fetch_and_add(&pool->old_style, 1);
    pmem_persist(&pool->old_style, sizeof pool->old_style);
    pool->words[number] = i + 1;
    pmem_persist(&pool->words[number], sizeof(long));
    atomic_fetch_xor(&pool->bytes[number], (unsigned char)(i | 1));
    pmem_persist(&pool->bytes[number], 1);
  }
  return NULL;
}

int main(int argc, char** argv) {
  const int file = argc > 2 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
  if (file < 0 || ftruncate(file, BYTES) != 0) return 1;
  times = atol(argv[2]);
  pool = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (pool == MAP_FAILED) return 1;
  if (pool->count != 0) return 0;
  pthread_t threads[THREADS];
  for (long i = 0; i < THREADS; ++i)
    pthread_create(&threads[i], NULL, work, (void*)i);
  for (long i = 0; i < THREADS; ++i)
    pthread_join(threads[i], NULL);
  return pool->count != THREADS * times || pool->old_style != THREADS * times;
}
