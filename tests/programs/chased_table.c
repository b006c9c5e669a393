// A table of 16 MiB whose lines are chased in random order; prints its pages on node 0 and node 1.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LINES = 1 << 18, PAGES = LINES / 64 };

typedef struct line {
  struct line* next;
  char rest[56];
} line;

static line* table(void) { return aligned_alloc(4096, LINES * sizeof(line)); }

int main(int count, char** arguments) {
  line* lines = table();
  for (uint32_t i = 0, at = 0; i < LINES; ++i) {
    const uint32_t to = (at * 1664525u + 1013904223u) % LINES;
    lines[at].next = &lines[to];
    at = to;
  }
  line* at = lines;
  for (long i = count > 1 ? atol(arguments[1]) : 0; i > 0; --i)
    at = at->next;
  void* pages[PAGES];
  int nodes[PAGES];
  for (int i = 0; i < PAGES; ++i)
    pages[i] = (char*)lines + 4096 * i;
  int on[2] = {0, 0};
  if (syscall(SYS_move_pages, 0, (long)PAGES, pages, NULL, nodes, 0) == 0)
    for (int i = 0; i < PAGES; ++i)
      if (nodes[i] == 0 || nodes[i] == 1) ++on[nodes[i]];
  printf("%d %d\n", on[0], on[1]);
  return at == NULL;
}
