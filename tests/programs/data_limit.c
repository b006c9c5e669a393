/* A limit of the heap (RLIMIT_DATA) that a program sets after its start: what fits is allocated, what
 * does not fails, and threads can still be started. Argument: the limit in MiB. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static void* allocate(void* unused) {
  (void)unused;
  char* block = malloc(1 << 20);
  if (block != NULL) memset(block, 1, 1 << 20);
  return block;
}

int main(int count, char** arguments) {
  if (count < 2) return 2;
  const size_t mib = strtoull(arguments[1], NULL, 10);
  const struct rlimit limit = {mib << 20, mib << 20};
  if (setrlimit(RLIMIT_DATA, &limit) != 0) return 1;
  char* half = malloc(mib << 19);
  printf("half %d\n", half != NULL);
  if (half != NULL) memset(half, 1, mib << 19);
  errno = 0;
  printf("all %d", malloc(mib << 20) != NULL);
  printf(" %d\n", errno == ENOMEM);
  pthread_t thread;
  void* block = NULL;
  const int code = pthread_create(&thread, NULL, allocate, NULL);
  if (code == 0) pthread_join(thread, &block);
  printf("thread %d %d\n", code, block != NULL);
  free(block);
  free(half);
  half = malloc(mib << 19);
  printf("again %d\n", half != NULL);
  return 0;
}
