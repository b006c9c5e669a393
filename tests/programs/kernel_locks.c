/* A mutex whose word the kernel changes lies in the pool, the file argv[1]; two threads contend for it.
 * argv[2] is "inherit" (priority inheritance) or "robust": a thread ends with the mutex. In a pool that
 * exists, the mutex is not initialized again. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libpmem.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 8192, TIMES = 20 };

static struct {
  pthread_mutex_t mutex;
  long initialized;
  _Alignas(4096) long count;
}* pool;

static void add(void) {
  ++pool->count;
  pmem_persist(&pool->count, sizeof pool->count);
}

static void* count(void* unused) {
  for (int i = 0; i < TIMES; ++i) {
    if (pthread_mutex_lock(&pool->mutex) != 0) _exit(2);
    const long before = pool->count;
    usleep(200);
    if (pool->count != before) _exit(3);
    add();
    if (pthread_mutex_unlock(&pool->mutex) != 0) _exit(4);
  }
  return unused;
}

static void* end_with_it(void* unused) {
  pthread_mutex_lock(&pool->mutex);
  return unused;
}

int main(int argc, char** argv) {
  const int file = argc == 3 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
  if (file < 0 || ftruncate(file, BYTES) != 0) return 1;
  pool = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (pool == MAP_FAILED) return 1;
  const int is_robust = strcmp(argv[2], "robust") == 0;
  pthread_mutexattr_t how;
  pthread_mutexattr_init(&how);
  if (is_robust)
    pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
  else
    pthread_mutexattr_setprotocol(&how, PTHREAD_PRIO_INHERIT);
  if (!pool->initialized) pthread_mutex_init(&pool->mutex, &how);
  pool->initialized = 1;
  pmem_persist(&pool->initialized, sizeof pool->initialized);
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i)
    pthread_create(&threads[i], NULL, is_robust ? end_with_it : count, NULL);
  if (is_robust) {
    pthread_join(threads[0], NULL);
    if (pthread_mutex_lock(&pool->mutex) != EOWNERDEAD) return 5;
    pthread_mutex_consistent(&pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
    return 0;
  }
  for (int i = 0; i < 2; ++i)
    pthread_join(threads[i], NULL);
  return pool->count % (2 * TIMES) != 0;
}
