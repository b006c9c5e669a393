/* A chained hash map: argv[1] entries of 64 bytes are put in, then argv[2] are looked up at random. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
  struct entry* next;
  uint64_t key;
  char value[48];
};
static struct entry** buckets;
static uint64_t bucket_count;

static uint64_t hash(uint64_t key) { return key * 0x9e3779b97f4a7c15u >> 20; }

static uint64_t draw(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  return *state ^= *state << 17;
}

static struct entry* new_entry(uint64_t key) {
  struct entry* e = malloc(sizeof *e);
  e->key = key;
  memset(e->value, (int)key, sizeof e->value);
  return e;
}

static void put(uint64_t key) {
  struct entry* e = new_entry(key);
  struct entry** head = &buckets[hash(key) & (bucket_count - 1)];
  e->next = *head;
  *head = e;
}

static struct entry* get(uint64_t key) {
  struct entry* e = buckets[hash(key) & (bucket_count - 1)];
  while (e != NULL && e->key != key) e = e->next;
  return e;
}

int main(int argc, char** argv) {
  const uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
  const uint64_t gets = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
  for (bucket_count = 16; bucket_count < n; bucket_count *= 2) {
  }
  buckets = calloc(bucket_count, sizeof *buckets);
  for (uint64_t i = 0; i < n; ++i) put(i * 2654435761u);
  uint64_t state = 88172645463325252u, sum = 0;
  for (uint64_t i = 0; i < gets; ++i) {
    const struct entry* e = get(draw(&state) % n * 2654435761u);
    if (e == NULL) return 1;
    sum += (unsigned char)e->value[7];
  }
  printf("%llu\n", (unsigned long long)sum);
  return 0;
}
