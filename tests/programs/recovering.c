/* Two words that must be equal, kept so by an undo log; the checker recovers its image before it
 * looks. With -DBUG=1 its recovery is right unless power fails in it: the log is given up before
 * the words that were taken from it are durable. -DCHECK makes the checker. */
#include <libpmem.h>
#include <stdint.h>
#include <stdio.h>
#ifndef BUG
#define BUG 0
#endif
#define LINE __attribute__((aligned(64)))

struct pool {
  struct { LINE uint64_t word; } pair[2];
  struct { LINE uint64_t used, old; } log;
};

static struct pool *map(const char *path) {
  return pmem_map_file(path, sizeof(struct pool), PMEM_FILE_CREATE, 0600, NULL, NULL);
}
static void set(uint64_t *word, uint64_t value) {
  *word = value;
  pmem_persist(word, 8);
}

#ifndef CHECK
int main(int count, char **arguments) {
  struct pool *p = map(arguments[count - 1]);
  if (p == NULL) return 1;
  for (uint64_t i = 1; i < 3; ++i) {
    set(&p->log.old, p->pair[0].word);
    set(&p->log.used, 1);
    set(&p->pair[0].word, i);
    set(&p->pair[1].word, i);
    set(&p->log.used, 0);
  }
  return 0;
}
#else
static void recover(struct pool *p) {
  if (p->log.used == 0) return;
  p->pair[0].word = p->log.old;
  p->pair[1].word = p->log.old;
#if BUG == 0
  pmem_persist(p->pair, sizeof p->pair);
#endif
  set(&p->log.used, 0); /* SITE 1 */
  pmem_persist(p->pair, sizeof p->pair);
}

int main(int count, char **arguments) {
  struct pool *p = map(arguments[count - 1]);
  if (p == NULL) return 2;
  recover(p);
  if (p->pair[0].word == p->pair[1].word) return 0;
  puts("the words differ");
  return 1;
}
#endif
