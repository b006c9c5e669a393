/* Child processes: what they find, and what they can still do. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "soak.h"

static void await(pid_t child) {
  const char* before = enter("waiting for a child");
  atomic_store(&me->child, child);
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    atomic_fetch_add(&me->steps, 0);
  atomic_store(&me->child, 0);
  if (status != 0) fail("child %d ended with status %#x", child, (unsigned)status);
  enter(before);
}

static void begin_child(void) {
  is_child = true;
  atomic_store(&me->child_phase, "begins");
}

static void* work_in_thread(void* seed) {
  struct random random = random_of((uint64_t)(uintptr_t)seed);
  struct piece held[50] = {0};
  churn(&random, held, 50, 300);
  for (int i = 0; i < 50; ++i)
    return_piece(&random, &held[i]);
  return NULL;
}

static void start_threads(struct random* random) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i)
    if (pthread_create(&threads[i], NULL, work_in_thread, (void*)(uintptr_t)next_random(random)) !=
        0)
      threads[i] = 0; /* the tier is full */
  for (int i = 0; i < 2; ++i)
    if (threads[i] != 0) pthread_join(threads[i], NULL);
}

static void become_program(struct random* random) {
  char seed[32];
  snprintf(seed, sizeof seed, "%llu", (unsigned long long)next_random(random));
  execl("/proc/self/exe", "soak", "alone", seed, (char*)NULL);
  fail("cannot execute");
}

static void work_in_child(struct random* random) {
  enter("checks what the parent allocated");
  check_stable();
  check_exchange();
  enter("allocates");
  struct piece held[300] = {0};
  churn(random, held, 300, 1000);
  enter("frees what the parent allocated");
  return_exchange(random, 2);
  churn(random, held, 300, 1000);
  enter("checks what is left");
  for (int i = 0; i < 300; ++i)
    return_piece(random, &held[i]);
  check_exchange();
  check_stable();
}

/* `libc_is_whole`: the child can start threads and call exit(). */
static void end_child(struct random* random, bool libc_is_whole) {
  if (libc_is_whole && once_in(random, 3)) {
    enter("starts threads");
    start_threads(random);
  }
  if (once_in(random, 8)) become_program(random);
  enter("ends");
  if (libc_is_whole && once_in(random, 3)) exit(0);
  _exit(0);
}

void fork_and_work(struct random* random) {
  const char* before = enter("forking");
  struct random own = random_of(next_random(random));
  /* While another thread of the parent is in such a call, what libc knows is half changed in the child:
   * pthread_create() can free thread-local data twice. A tier in a file is copied before the fork. */
  const uint64_t ended = atomic_load(&shared->libc.ended);
  const pid_t child = fork();
  if (child < 0) {
    if (errno != EAGAIN && errno != ENOMEM) fail("fork: errno %d", errno);
  } else if (child == 0) {
    const bool libc_is_whole = atomic_load(&shared->libc.begun) == ended;
    begin_child();
    work_in_child(&own);
    if (once_in(&own, 8)) {
      enter("forks");
      const pid_t nested = fork();
      if (nested == 0) {
        check_stable();
        _exit(0);
      }
      int status = -1;
      if (nested > 0 && (waitpid(nested, &status, 0) != nested || status != 0))
        fail("the child of a child ended with status %#x", (unsigned)status);
    }
    end_child(&own, libc_is_whole);
  } else {
    await(child);
    atomic_fetch_add(&shared->counts.forks, 1);
  }
  enter(before);
}

void fork_in_handler(void) {
  const char* before = enter("forking in a handler");
  const int code = errno;
  const pid_t child = fork();
  if (child == 0) {
    begin_child();
    check_stable();
    _exit(0);
  }
  if (child > 0) {
    await(child);
    atomic_fetch_add(&shared->counts.handler_forks, 1);
  }
  errno = code;
  enter(before);
}

int run_alone(struct random* random) {
  static struct piece held[5000];
  unsigned count = 0;
  while (count < 5000 && take_piece(random, random_size(random), &held[count]))
    ++count;
  for (unsigned i = 0; i < count; ++i)
    return_piece(random, &held[i]);
  return 0;
}
