// Pointer chase over a 256 MiB list, mixed with arithmetic per node. args: MiB steps(thousands) work
#include "common.h"
struct Node {
  Node* next;
  uint64_t value;
  char pad[48];
};
static Node* make_list(size_t n) {
  Node* nodes = (Node*)malloc(n * sizeof(Node));
  uint32_t* order = (uint32_t*)malloc(n * sizeof(uint32_t));
  for (size_t i = 0; i < n; i++)
    order[i] = i;
  Rng r{42};
  for (size_t i = n - 1; i > 0; i--) {
    size_t j = r() % (i + 1);
    uint32_t t = order[i];
    order[i] = order[j];
    order[j] = t;
  }
  for (size_t i = 0; i < n; i++) {
    nodes[order[i]].next = &nodes[order[(i + 1) % n]];
    nodes[order[i]].value = i;
  }
  free(order);
  return nodes;
}
__attribute__((noinline)) static uint64_t walk(Node* p, size_t steps, int work) {
  uint64_t sum = 0;
  for (size_t i = 0; i < steps; i++) {
    uint64_t v = p->value;
    for (int k = 0; k < work; k++)
      v = v * 6364136223846793005ull + 1442695040888963407ull;
    sum += v;
    p = p->next;
  }
  return sum;
}
int main(int argc, char** argv) {
  size_t mib = arg(argc, argv, 1, 256), steps = arg(argc, argv, 2, 6000) * 1000;
  int work = (int)arg(argc, argv, 3, 40);
  Node* list = make_list(mib * (1 << 20) / sizeof(Node));
  printf("%llu\n", (unsigned long long)walk(list, steps, work));
}
