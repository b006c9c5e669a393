// 1,000 threads, a few at a time, each of which allocates and frees blocks and ends: what an
// allocator keeps of them. Usage: short_threads AT_A_TIME
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { threads = 1000, blocks = 128, rounds = 20, most_at_a_time = 100 };

static void* work(void* number) {
  unsigned random = 1 + (unsigned)(size_t)number;
  char* live[blocks] = {0};
  for (int i = 0; i < blocks * rounds; ++i) {
    random = random * 1103515245 + 12345;
    char** block = &live[random >> 16 & (blocks - 1)];
    free(*block);
    const size_t bytes = 16 + (random >> 8 & 1023);
    *block = malloc(bytes);
    if (*block == NULL) abort();
    memset(*block, 1, bytes);
  }
  for (int i = 0; i < blocks; ++i)
    free(live[i]);
  return NULL;
}

int main(int argc, char** argv) {
  const int at_a_time = argc == 2 ? atoi(argv[1]) : 0;
  if (at_a_time < 1 || at_a_time > most_at_a_time) return 2;
  pthread_t running[most_at_a_time];
  for (int done = 0; done < threads; done += at_a_time) {
    for (int i = 0; i < at_a_time; ++i)
      if (pthread_create(&running[i], NULL, work, (void*)(size_t)(done + i)) != 0) return 1;
    for (int i = 0; i < at_a_time; ++i)
      pthread_join(running[i], NULL);
  }
  return 0;
}
