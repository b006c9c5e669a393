/* Everything at once for as long as is asked: forks, exits of threads, libraries loaded and unloaded,
 * signals whose handlers fork, and a tier that gets full. All bytes of all blocks are checked.
 *
 * Usage  soak SECONDS LIMIT FAULT LIBRARY...
 *        soak alone SEED
 *
 * Ends with a report if a thread makes no step for LIMIT seconds. FAULT is none, byte (one byte of a
 * block is changed) or hang (threads hang): the soak must find both. Prints what it did. */
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "soak.h"

static size_t bytes_in_use(void) {
  malloc_trim(0);
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

static time_t now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

static void change_a_byte(void) {
  struct random random = new_random();
  struct piece piece;
  if (!take_piece(&random, 100, &piece)) fail("no memory");
  piece.at[50] ^= 1;
  piece = swap_piece(&random, piece);
  return_piece(&random, &piece);
}

/* This thread allocates nothing, so that it sees all hangs. */
static void run(unsigned seconds, const char* fault) {
  const time_t end = now_s() + (time_t)seconds;
  while (now_s() < end) {
    watch();
    usleep(200000);
    if (strcmp(fault, "hang") == 0) hanging = true;
  }
  if (strcmp(fault, "byte") == 0) change_a_byte();
  for (stop = true; !actors_ended(); usleep(10000))
    watch();
}

static void print_counts(size_t left) {
  const struct counts* counts = &shared->counts;
  printf("checked %" PRIu64 "\nforks %" PRIu64 "\nhandler_forks %" PRIu64 "\nthreads %" PRIu64
         "\nloads %" PRIu64 "\nsignals %" PRIu64 "\nfull %" PRIu64 "\nleft %zu\n",
         counts->checked, counts->forks, counts->handler_forks, counts->threads, counts->loads,
         counts->signals, counts->full, left);
}

int main(int count, char** arguments) {
  if (count < 3) return 2;
  open_watchdog((unsigned)atoi(arguments[2]));
  me = &shared->actors[0];
  struct random random = random_of(strtoull(arguments[2], NULL, 10));
  if (strcmp(arguments[1], "alone") == 0) return run_alone(&random);
  if (count < 5) return 2;
  sigset_t signal; /* each thread that is not this one takes it */
  sigemptyset(&signal);
  sigaddset(&signal, SIGUSR1);
  const size_t before = bytes_in_use();
  open_exchange();
  start_actors(arguments + 4, (unsigned)count - 4);
  pthread_sigmask(SIG_BLOCK, &signal, NULL);
  run((unsigned)atoi(arguments[1]), arguments[3]);
  check_exchange();
  check_stable();
  return_exchange(&random, 1);
  return_stable(&random);
  const size_t after = bytes_in_use();
  print_counts(after > before ? after - before : 0);
  return 0;
}
