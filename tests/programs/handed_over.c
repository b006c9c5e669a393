// A thread makes a store and wakes the main thread, and calls nothing that a recorder replaces for
// a while. A second thread then persists what was stored, or leaves it, and stores that it is there.
// Arguments: POOL WAY [persist]. On an image that says so wrongly, it ends with 5.
#define _GNU_SOURCE // no header comes before this line
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile uint64_t *pool;
static const char *way;
static int persists;
static int released;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static int ends[2];

static int is(const char *name) { return strcmp(way, name) == 0; }

static void persist(volatile uint64_t *at) {
  __asm__ volatile("clwb (%0)\n\tsfence" : : "r"(at) : "memory");
}

static void wait_unseen(void) {
  while (!__atomic_load_n(&released, __ATOMIC_ACQUIRE))
    syscall(SYS_sched_yield); // the function of this name would be seen
}

static void *store(void *unused) {
  (void)unused;
  if (is("mutex")) pthread_mutex_lock(&mutex);
  pool[0] = 1; // HANDED
  if (is("mutex")) pthread_mutex_unlock(&mutex);
  if (is("semaphore")) sem_post(&semaphore);
  if (is("barrier")) pthread_barrier_wait(&barrier);
  if (is("pipe") && write(ends[1], "", 1) != 1) abort();
  if (!is("end")) wait_unseen();
  return NULL;
}

static void *take(void *unused) {
  (void)unused;
  if (persists) persist(pool);
  pool[8] = 1;
  persist(pool + 8);
  return NULL;
}

static void wait_for_store(pthread_t storing) {
  if (is("semaphore")) sem_wait(&semaphore);
  if (is("barrier")) pthread_barrier_wait(&barrier);
  char got;
  if (is("pipe") && read(ends[0], &got, 1) != 1) abort();
  if (is("end")) pthread_join(storing, NULL);
  for (int there = 0; is("mutex") && !there;) {
    pthread_mutex_lock(&mutex);
    there = pool[0] == 1;
    pthread_mutex_unlock(&mutex);
  }
  while (is("race") && pool[0] != 1)
    syscall(SYS_sched_yield);
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  way = argv[2];
  persists = argc > 3;
  const int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 4096) != 0 || pipe(ends) != 0) return 2;
  pool = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (pool[8] == 1) return pool[0] == 1 ? 0 : 5;
  sem_init(&semaphore, 0, 0);
  pthread_barrier_init(&barrier, NULL, 2);
  pool[0] = pool[8] = 2;
  persist(pool);
  persist(pool + 8);
  pthread_t storing, taking;
  pthread_create(&storing, NULL, store, NULL);
  wait_for_store(storing);
  pthread_create(&taking, NULL, take, NULL);
  pthread_join(taking, NULL);
  __atomic_store_n(&released, 1, __ATOMIC_RELEASE);
  if (!is("end")) pthread_join(storing, NULL);
  return 0;
}
