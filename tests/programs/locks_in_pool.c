/* Locks of each kind lie in the pool, the file argv[1]; three threads contend for them, count, and persist
 * the counter. */
#include <fcntl.h>
#include <libpmem.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 8192, THREADS = 3, TIMES = 8 };

static struct {
  pthread_mutex_t mutex;
  pthread_rwlock_t lock;
  pthread_spinlock_t spin;
  sem_t semaphore;
  pthread_cond_t turn;
  pthread_barrier_t barrier;
  _Alignas(64) long count;
}* pool;

static void add(void) {
  ++pool->count;
  pmem_persist(&pool->count, sizeof pool->count);
}

static void* work(void* argument) {
  const long number = (long)argument;
  for (int i = 0; i < TIMES; ++i) {
    pthread_mutex_lock(&pool->mutex);
    while (pool->count % THREADS != number)
      pthread_cond_wait(&pool->turn, &pool->mutex);
    usleep(300);
    add();
    pthread_cond_broadcast(&pool->turn);
    pthread_mutex_unlock(&pool->mutex);
  }
  pthread_barrier_wait(&pool->barrier);
  for (int i = 0; i < TIMES; ++i) {
    pthread_rwlock_wrlock(&pool->lock);
    usleep(300);
    add();
    pthread_rwlock_unlock(&pool->lock);
    sem_wait(&pool->semaphore);
    usleep(300);
    pthread_spin_lock(&pool->spin);
    pthread_spin_unlock(&pool->spin);
    sem_post(&pool->semaphore);
  }
  return NULL;
}

int main(int argc, char** argv) {
  const int file = argc == 2 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
  if (file < 0 || ftruncate(file, BYTES) != 0) return 1;
  pool = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (pool == MAP_FAILED) return 1;
  if (pool->count != 0) return 0;
  pthread_mutex_init(&pool->mutex, NULL);
  pthread_rwlock_init(&pool->lock, NULL);
  pthread_spin_init(&pool->spin, PTHREAD_PROCESS_PRIVATE);
  sem_init(&pool->semaphore, 0, 1);
  pthread_cond_init(&pool->turn, NULL);
  pthread_barrier_init(&pool->barrier, NULL, THREADS);
  pthread_t threads[THREADS];
  for (long i = 0; i < THREADS; ++i)
    pthread_create(&threads[i], NULL, work, (void*)i);
  for (long i = 0; i < THREADS; ++i)
    pthread_join(threads[i], NULL);
  return pool->count != 2 * THREADS * TIMES;
}
