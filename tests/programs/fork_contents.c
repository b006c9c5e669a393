/* Forks while two threads fill and empty their stacks of free blocks; each child checks that no block is
 * handed out twice and that what the parent holds stays as it was. Argument: how many forks. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHURNED = 1000, HELD = 4000, TAKEN = 20000, BYTES = 64 };

static volatile int stop;
static uint64_t* held[HELD];

static void* churn(void* unused) {
  (void)unused;
  void* blocks[CHURNED];
  while (!stop) {
    for (int i = 0; i < CHURNED; ++i) blocks[i] = malloc(BYTES);
    for (int i = 0; i < CHURNED; ++i) free(blocks[i]);
  }
  return NULL;
}

static int child(void) {
  static uint64_t* taken[TAKEN];
  for (uint64_t i = 0; i < TAKEN; ++i) {
    taken[i] = malloc(BYTES);
    if (taken[i] == NULL) return 2;
    *taken[i] = HELD + i;
  }
  for (uint64_t i = 0; i < TAKEN; ++i)
    if (*taken[i] != HELD + i) return 3;
  for (uint64_t i = 0; i < HELD; ++i)
    if (*held[i] != i) return 4;
  return 0;
}

int main(int count, char** arguments) {
  int forks = count > 1 ? atoi(arguments[1]) : 100;
  pthread_t threads[2];
  for (int t = 0; t < 2; ++t) pthread_create(&threads[t], NULL, churn, NULL);
  for (uint64_t i = 0; i < HELD; ++i) {
    held[i] = malloc(BYTES);
    *held[i] = i;
  }
  int good = 0;
  for (int i = 0; i < forks; ++i) {
    alarm(20);
    pid_t forked = fork();
    if (forked == 0) _exit(child());
    int status = 0;
    if (forked > 0 && waitpid(forked, &status, 0) == forked && status == 0) ++good;
  }
  stop = 1;
  for (int t = 0; t < 2; ++t) pthread_join(threads[t], NULL);
  printf("%d of %d\n", good, forks);
  return good != forks;
}
