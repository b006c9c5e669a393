/* Detached threads that exit with warm caches. Ten stacks exceed glibc's stack cache, so that glibc
 * frees thread-local blocks while it holds the lock of that cache. Ends when all threads are gone. */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { thread_count = 10, smallest = 16, largest = 32 << 10, blocks_per_size = 4 };

static pthread_barrier_t together;

static void* warm_up(void* unused) {
  for (size_t bytes = smallest; bytes <= largest; bytes += bytes / 4) {
    char* blocks[blocks_per_size];
    for (int i = 0; i < blocks_per_size; ++i)
      memset(blocks[i] = malloc(bytes), i, bytes);
    for (int i = 0; i < blocks_per_size; ++i) free(blocks[i]);
  }
  pthread_barrier_wait(&together);
  return unused;
}

static int threads_now(void) {
  int count = 0;
  DIR* tasks = opendir("/proc/self/task");
  for (struct dirent* task; (task = readdir(tasks)) != NULL;) count += task->d_name[0] != '.';
  closedir(tasks);
  return count;
}

int main(void) {
  pthread_attr_t detached;
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&detached, 8 << 20);
  pthread_barrier_init(&together, NULL, thread_count);
  for (int i = 0; i < thread_count; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, &detached, warm_up, NULL) != 0) return 1;
  }
  while (threads_now() > 1) usleep(1000);
  puts("all threads exited");
  return 0;
}
