/* Three sites, each through a wrapper that names nothing: a table that is chased, a log that is
 * written in order, and an array that is read once. Arguments: nodes, steps. */
#include <stdio.h>
#include <stdlib.h>

struct node {
  struct node* next;
  long more[7];
};

__attribute__((noinline)) void* grab(size_t bytes) {
  void* p = malloc(bytes);
  __asm__ volatile("" : "+r"(p)); /* no tail call */
  return p;
}
__attribute__((noinline)) struct node* make_table(long n) {
  struct node* t = grab(n * sizeof *t);
  __asm__ volatile("" : "+r"(t));
  return t;
}
__attribute__((noinline)) long* make_log(long n) {
  long* t = grab(n * sizeof *t);
  __asm__ volatile("" : "+r"(t));
  return t;
}
__attribute__((noinline)) long* make_array(long n) {
  long* t = grab(n * sizeof *t);
  __asm__ volatile("" : "+r"(t));
  return t;
}

static unsigned long state = 88172645463325252u;
static unsigned long draw(void) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  long n = atol(argv[1]), steps = atol(argv[2]), sum = 0;
  struct node* table = make_table(n);
  long* log = make_log(n * 4);
  long* array = make_array(n * 16);
  for (long i = 0; i < n; ++i) table[i].more[0] = i;
  for (long i = n - 1; i > 0; --i) { /* Sattolo: one cycle */
    long j = (long)(draw() % (unsigned long)i), held = table[i].more[0];
    table[i].more[0] = table[j].more[0];
    table[j].more[0] = held;
  }
  for (long i = 0; i < n; ++i) table[i].next = &table[table[i].more[0]];
  for (long i = 0; i < n * 16; ++i) array[i] = i;
  for (long i = 0; i < n * 16; ++i) sum += array[i];
  struct node* at = table;
  for (long i = 0; i < steps; ++i) {
    at = at->next;
    if (i % 4 == 0) log[i / 4 % (n * 4)] = i;
  }
  printf("%ld %ld\n", sum, at->more[0]);
  free(array);
  return 0;
}
