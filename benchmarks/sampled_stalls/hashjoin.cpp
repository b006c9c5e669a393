// Hash join: build a chained table of 2 M rows, probe with 12 M rows that stream. args: build(thousands) probe(thousands)
#include "common.h"
struct Row {
  uint64_t key, payload;
};
struct Entry {
  uint64_t key, payload;
  Entry* next;
};
static Row* make_build(size_t n) {
  Row* p = (Row*)malloc(n * sizeof(Row));
  Rng r{5};
  for (size_t i = 0; i < n; i++)
    p[i] = {r() % (4 * n), i};
  return p;
}
static Row* make_probe(size_t n, size_t keys) {
  Row* p = (Row*)malloc(n * sizeof(Row));
  Rng r{6};
  for (size_t i = 0; i < n; i++)
    p[i] = {r() % (4 * keys), i};
  return p;
}
static size_t hash(uint64_t k, size_t mask) { return (k * 0x9e3779b97f4a7c15ull >> 20) & mask; }
__attribute__((noinline)) static Entry** build(const Row* rows, size_t n, size_t mask) {
  Entry** heads = (Entry**)calloc(mask + 1, sizeof(Entry*));
  Entry* pool = (Entry*)malloc(n * sizeof(Entry));
  for (size_t i = 0; i < n; i++) {
    size_t h = hash(rows[i].key, mask);
    pool[i] = {rows[i].key, rows[i].payload, heads[h]};
    heads[h] = &pool[i];
  }
  return heads;
}
__attribute__((noinline)) static uint64_t probe(Entry** heads, const Row* rows, size_t n,
                                                size_t mask) {
  uint64_t sum = 0;
  for (size_t i = 0; i < n; i++)
    for (Entry* e = heads[hash(rows[i].key, mask)]; e; e = e->next)
      if (e->key == rows[i].key) sum += e->payload ^ rows[i].payload;
  return sum;
}
int main(int argc, char** argv) {
  size_t nb = arg(argc, argv, 1, 2000) * 1000, np = arg(argc, argv, 2, 12000) * 1000, mask = 1;
  while (mask < nb)
    mask <<= 1;
  mask--;
  Row* b = make_build(nb);
  Row* p = make_probe(np, nb);
  Entry** heads = build(b, nb, mask);
  printf("%llu\n", (unsigned long long)probe(heads, p, np, mask));
}
