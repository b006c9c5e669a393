/* What a quarantine does to malloc and free. Usage: quarantine delay | twice | churn
 *   delay  prints for some sizes after how many frees of that size a block is allocated again
 *   twice  frees a block that is in quarantine
 *   churn  threads and children allocate, hand over and free blocks, and check their contents */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { threads = 4, own_blocks = 200, shared_blocks = 64, steps = 15000, most_frees = 100000 };

struct block {
  size_t size;
  unsigned char fill;
};
static struct block* shared[shared_blocks];

static int delay(void) {
  const size_t sizes[] = {16, 100, 1000, 5000, 40000};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    void* first = malloc(sizes[i]);
    const uintptr_t wanted = (uintptr_t)first;
    free(first);
    int frees = 0;
    for (; frees < most_frees; ++frees) {
      void* block = malloc(sizes[i]);
      const uintptr_t got = (uintptr_t)block;
      free(block);
      if (got == wanted) break;
    }
    printf("%zu %d\n", sizes[i], frees);
  }
  return 0;
}

static int twice(void) {
  void* volatile block = malloc(100);
  free(block);
  free(malloc(50));
  free(block);
  return 0;
}

static struct block* make(unsigned random) {
  const size_t most = (size_t)16 << (random >> 8 & 11);
  const size_t size = sizeof(struct block) + (random >> 12) % most;
  struct block* block = malloc(size);
  if (block == NULL) abort();
  memset(block, (int)(random & 255), size);
  block->size = size;
  block->fill = (unsigned char)random;
  return block;
}

/* Frees a block. A wrong byte ends the program. */
static void end(struct block* block) {
  if (block == NULL) return;
  for (size_t i = sizeof *block; i < block->size; ++i)
    if (((unsigned char*)block)[i] != block->fill) abort();
  free(block);
}

static void* churn(void* number) {
  unsigned random = 1 + (unsigned)(uintptr_t)number;
  struct block* own[own_blocks] = {0};
  for (int step = 0; step < steps; ++step) {
    random = random * 1103515245 + 12345;
    struct block* block = make(random >> 4);
    if ((random >> 28) == 0) {
      end(__atomic_exchange_n(&shared[(random >> 10) % shared_blocks], block, __ATOMIC_ACQ_REL));
    } else {
      struct block** at = &own[(random >> 10) % own_blocks];
      end(*at);
      *at = block;
    }
  }
  for (int i = 0; i < own_blocks; ++i)
    end(own[i]);
  return NULL;
}

static int churn_all(void) {
  pthread_t running[threads];
  for (uintptr_t i = 0; i < threads; ++i)
    if (pthread_create(&running[i], NULL, churn, (void*)i) != 0) return 1;
  int failed = 0;
  for (int i = 0; i < 5; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      memset(shared, 0, sizeof shared); /* handed over at the moment of the fork, perhaps */
      churn((void*)(uintptr_t)100);
      _exit(0);
    }
    int status = 0;
    failed += waitpid(child, &status, 0) != child || status != 0;
  }
  for (int i = 0; i < threads; ++i)
    pthread_join(running[i], NULL);
  for (int i = 0; i < shared_blocks; ++i)
    end(shared[i]);
  return failed;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (strcmp(argv[1], "delay") == 0) return delay();
  if (strcmp(argv[1], "twice") == 0) return twice();
  return churn_all();
}
