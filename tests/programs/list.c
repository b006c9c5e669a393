/* A linked list of argv[1] nodes of 48 bytes in a scattered order, walked and counted argv[2] times;
   nodes straddle lines, and every node is modified. */
#include <stdlib.h>

struct node {
  struct node *next;
  long count, rest[4];
};

int main(int argc, char **argv) {
  long n = argc > 1 ? atol(argv[1]) : 1000, rounds = argc > 2 ? atol(argv[2]) : 2;
  struct node *nodes = calloc((size_t)n, sizeof *nodes);
  long step = n / 3 * 2 + 1, at = 0;
  while (n % step == 0) ++step;
  for (long i = 0; i < n; ++i) {
    long next = (at + step) % n;
    nodes[at].next = nodes + next;
    at = next;
  }
  struct node *walker = nodes;
  for (long i = 0; i < n * rounds; ++i) {
    ++walker->count;
    walker = walker->next;
  }
  return nodes[0].count < 1;
}
