/* Blocks that one thread allocates and another frees. */
#include <pthread.h>

#include "soak.h"

enum { shards = 16, slots_per_shard = 128, stable_count = 400 };

static struct shard {
  pthread_mutex_t lock;
  struct piece slots[slots_per_shard];
} exchange[shards];
static struct piece stable[stable_count];

_Thread_local bool in_handler;

static void lock_all(void) {
  for (int i = 0; i < shards && !in_handler; ++i)
    pthread_mutex_lock(&exchange[i].lock);
}
static void unlock_all(void) {
  for (int i = 0; i < shards && !in_handler; ++i)
    pthread_mutex_unlock(&exchange[i].lock);
}

void open_exchange(void) {
  struct random random = random_of(1);
  for (int i = 0; i < shards; ++i)
    pthread_mutex_init(&exchange[i].lock, NULL);
  for (int i = 0; i < stable_count; ++i)
    if (!take_piece(&random, random_size(&random), &stable[i])) fail("no memory at the start");
  pthread_atfork(lock_all, unlock_all, unlock_all);
}

struct piece swap_piece(struct random* random, struct piece piece) {
  struct shard* shard = &exchange[random_below(random, shards)];
  struct piece* slot = &shard->slots[random_below(random, slots_per_shard)];
  pthread_mutex_lock(&shard->lock);
  const struct piece before = *slot;
  *slot = piece;
  pthread_mutex_unlock(&shard->lock);
  return before;
}

void check_exchange(void) {
  for (int i = 0; i < shards; ++i)
    for (int k = 0; k < slots_per_shard; ++k)
      check_piece(&exchange[i].slots[k]);
}

void return_exchange(struct random* random, unsigned once_in_slots) {
  for (int i = 0; i < shards; ++i)
    for (int k = 0; k < slots_per_shard; ++k)
      if (once_in(random, once_in_slots)) return_piece(random, &exchange[i].slots[k]);
}

void check_stable(void) {
  for (int i = 0; i < stable_count; ++i)
    check_piece(&stable[i]);
}

void return_stable(struct random* random) {
  for (int i = 0; i < stable_count; ++i)
    return_piece(random, &stable[i]);
}
