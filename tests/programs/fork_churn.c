/* Forks under churn: two threads allocate and free while the main thread forks; each child allocates,
 * frees and ends. Arguments: how many forks, below how many bytes the churned blocks are. Ends by
 * SIGALRM if one hangs. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int stop;
static unsigned block_limit = 20000;
static void* churn(void* seed) {
  unsigned state = (unsigned)(size_t)seed;
  void* blocks[256] = {0};
  while (!stop) {
    state = state * 1664525u + 1013904223u;
    void** at = &blocks[state >> 24];
    free(*at);
    *at = malloc((state >> 8) % block_limit);
  }
  for (int i = 0; i < 256; ++i) free(blocks[i]);
  return NULL;
}

int main(int count, char** arguments) {
  int forks = count > 1 ? atoi(arguments[1]) : 100;
  if (count > 2) block_limit = (unsigned)atoi(arguments[2]);
  pthread_t threads[2];
  for (size_t t = 0; t < 2; ++t) pthread_create(&threads[t], NULL, churn, (void*)(t + 1));
  int good = 0;
  for (int i = 0; i < forks; ++i) {
    alarm(20);
    pid_t child = fork();
    if (child == 0) {
      alarm(20);
      for (int k = 0; k < 200; ++k) free(malloc((size_t)k * 37));
      _exit(0);
    }
    int status = 0;
    if (child > 0 && waitpid(child, &status, 0) == child && status == 0) ++good;
  }
  stop = 1;
  for (int t = 0; t < 2; ++t) pthread_join(threads[t], NULL);
  printf("%d of %d\n", good, forks);
  return good != forks;
}
