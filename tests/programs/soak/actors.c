/* The threads of the soak: workers that come and go, and one each that forks, loads libraries, fills
 * the tier, sends signals and starts workers. */
#define _GNU_SOURCE /* pthread_tryjoin_np */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "soak.h"

_Atomic bool stop, hanging;

static char** library_paths;
static unsigned library_count;
static pthread_t threads[actor_count];
static pthread_key_t at_end;
/* Held while the tier is filled: libc ends a program that it cannot give thread-local data. */
static pthread_rwlock_t filling = PTHREAD_RWLOCK_INITIALIZER;

static void use_library(struct random* random) {
  const char* before = enter("using a library");
  pthread_rwlock_rdlock(&filling);
  atomic_fetch_add(&shared->libc.begun, 1);
  void* library = dlopen(library_paths[random_below(random, library_count)], RTLD_NOW);
  if (library != NULL) {
    unsigned char* (*make)(size_t, unsigned char) =
        (unsigned char* (*)(size_t, unsigned char))dlsym(library, "make_block");
    const size_t size = random_size(random);
    const unsigned char value = (unsigned char)next_random(random);
    unsigned char* block = make(size, value);
    dlclose(library);
    for (size_t i = 0; block != NULL && i < size; ++i)
      if (block[i] != value) fail("byte %zu of a library's block of %zu has changed", i, size);
    free(block);
    atomic_fetch_add(&shared->counts.loads, 1);
  }
  atomic_fetch_add(&shared->libc.ended, 1);
  pthread_rwlock_unlock(&filling);
  enter(before);
}

/* Many blocks of one size: the cache of the thread overflows and is filled again. */
static void burst(struct random* random) {
  struct piece pieces[200] = {0};
  const size_t size = random_size(random) % 3000 + 1;
  const unsigned count = (unsigned)random_below(random, 200);
  for (unsigned i = 0; i < count; ++i)
    take_piece(random, size, &pieces[i]);
  const bool reverse = once_in(random, 2);
  for (unsigned i = 0; i < count; ++i)
    return_piece(random, &pieces[reverse ? count - 1 - i : i]);
}

static void pass_on(struct random* random) {
  struct piece piece;
  take_piece(random, random_size(random), &piece);
  piece = swap_piece(random, piece);
  return_piece(random, &piece);
}

static void ask(struct random* random) {
  if (once_in(random, 2))
    malloc_trim(0);
  else if (mallinfo2().uordblks == 0)
    fail("mallinfo2 reports no block in use");
}

void churn(struct random* random, struct piece* held, unsigned count, unsigned steps) {
  for (unsigned i = 0; i < steps; ++i) {
    struct piece* piece = &held[random_below(random, count)];
    if (piece->at == NULL)
      take_piece(random, random_size(random), piece);
    else if (once_in(random, 4))
      resize_piece(random, random_size(random), piece);
    else
      return_piece(random, piece);
  }
}

/* Called after the allocator has given up the thread's cache, or before; then once more. */
static void end_thread(void* pieces) {
  struct random random = random_of((uint64_t)(uintptr_t)pieces);
  struct piece* held = pieces;
  for (int i = 0; i < 20; ++i)
    return_piece(&random, &held[i]);
  if (once_in(&random, 2)) take_piece(&random, random_size(&random), &held[0]);
  if (held[0].at != NULL)
    pthread_setspecific(at_end, pieces);
  else
    free(pieces);
}

static void work(struct random* random) {
  struct piece held[64] = {0};
  struct piece* left = calloc(20, sizeof *left);
  if (left != NULL) pthread_setspecific(at_end, left);
  for (uint64_t life = 20 + random_below(random, 400); life > 0 && !stop; --life) {
    enter("churning");
    while (hanging)
      pause();
    churn(random, held, 64, 30);
    if (left != NULL) churn(random, left, 20, 2);
    for (int i = 0; i < 20; ++i)
      pass_on(random);
    if (once_in(random, 4)) burst(random);
    if (once_in(random, 50)) ask(random);
    if (once_in(random, 400)) use_library(random);
    if (once_in(random, 400)) fork_and_work(random);
  }
  enter("ending");
  for (int i = 0; i < 64; ++i) {
    if (once_in(random, 2)) held[i] = swap_piece(random, held[i]);
    return_piece(random, &held[i]);
  }
  atomic_fetch_add(&shared->counts.threads, 1);
}

static void fill_tier(struct random* random) {
  enum { most = 20000 };
  static struct piece held[most];
  enter("waiting to fill the tier");
  pthread_rwlock_wrlock(&filling);
  const size_t unit = once_in(random, 2) ? 1 << 20 : 20000;
  unsigned count = 0;
  enter("filling the tier");
  while (count < most && take_piece(random, 1 + random_below(random, unit), &held[count]))
    ++count;
  if (count < most) atomic_fetch_add(&shared->counts.full, 1);
  if (once_in(random, 3)) fork_and_work(random);
  usleep((useconds_t)random_below(random, 5000));
  enter("emptying the tier");
  for (unsigned i = 0; i < count; ++i)
    return_piece(random, &held[i]);
  pthread_rwlock_unlock(&filling);
}

static void send_signal(struct random* random) {
  enter("sending signals");
  const int thread = atomic_load(&shared->actors[random_below(random, actor_count)].thread);
  if (thread > 0) syscall(SYS_tgkill, getpid(), thread, SIGUSR1);
}

static void handle(int signal) {
  (void)signal;
  static _Atomic uint64_t turn;
  if (me == NULL || is_child) return;
  const bool before = in_handler;
  in_handler = true;
  atomic_fetch_add(&shared->counts.signals, 1);
  if (atomic_fetch_add(&turn, 1) % 32 == 0) fork_in_handler();
  in_handler = before;
}

static void begin_actor(void* place) {
  me = &shared->actors[(intptr_t)place];
  atomic_store(&me->thread, (int)syscall(SYS_gettid));
  enter("begins");
}

static void* be_worker(void* place) {
  begin_actor(place);
  struct random random = new_random();
  work(&random);
  return NULL;
}

static bool is_alive(int place) {
  const int thread = atomic_load(&shared->actors[place].thread);
  return thread > 0 && syscall(SYS_tgkill, getpid(), thread, 0) == 0;
}

/* Starts workers again that have ended. There may be no memory for one. */
static void keep_workers(struct random* random) {
  static pthread_t threads[workers];
  static bool started[workers];
  (void)random;
  enter("starting threads");
  for (int i = 0; i < workers; ++i) {
    if (started[i] && is_alive(i)) continue;
    atomic_fetch_add(&shared->libc.begun, 1);
    if (!started[i] || pthread_tryjoin_np(threads[i], NULL) == 0) {
      atomic_store(&shared->actors[i].thread, 0);
      started[i] = !stop && pthread_create(&threads[i], NULL, be_worker, (void*)(intptr_t)i) == 0;
    }
    atomic_fetch_add(&shared->libc.ended, 1);
  }
  for (int i = 0; stop && i < workers; ++i)
    if (started[i]) pthread_join(threads[i], NULL);
}

/* What a thread does again and again, and up to how long it waits meanwhile. */
static const struct {
  void (*act)(struct random*);
  unsigned pause_us;
} specialists[] = {{fork_and_work, 100000},
                   {use_library, 200000},
                   {fill_tier, 500000},
                   {send_signal, 4000},
                   {keep_workers, 5000}};

static void* be_specialist(void* place) {
  begin_actor(place);
  struct random random = new_random();
  const intptr_t number = (intptr_t)place - workers;
  for (bool last = false; !last;) {
    last = stop;
    specialists[number].act(&random);
    enter("pausing");
    usleep((useconds_t)random_below(&random, specialists[number].pause_us));
  }
  return NULL;
}

void start_actors(char** libraries, unsigned count) {
  library_paths = libraries;
  library_count = count;
  pthread_key_create(&at_end, end_thread);
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, NULL);
  for (int i = workers; i < actor_count; ++i)
    if (pthread_create(&threads[i], NULL, be_specialist, (void*)(intptr_t)i) != 0)
      fail("cannot start threads");
}

bool actors_ended(void) {
  static int joined = workers;
  while (joined < actor_count && pthread_tryjoin_np(threads[joined], NULL) == 0)
    ++joined;
  return joined == actor_count;
}
