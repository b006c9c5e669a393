/* A set of integers in persistent memory with an undo log, and ten ways to get it wrong.
 *
 * -DBUG=1 to 6 leave a store unlogged, 7 to 9 leave one unflushed, as nine sites of a published port
 * of intset do; 10 frees a node before it is unlinked, as a published hash map's removal does.
 * With -DCHECK it is the checker: it undoes what was under way and walks the set. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#ifndef BUG
#define BUG 0
#endif
#define LINE __attribute__((aligned(64)))

struct node { LINE uint64_t used, key, next; };
struct set {
  struct { LINE uint64_t count; struct { uint64_t at, old; } entry[7]; } log;
  LINE uint64_t size;
  struct { LINE uint64_t head; } bucket[2];
  struct node node[8]; /* number 0 is none */
};

#ifndef CHECK
#include <libpmem.h>
static struct set *s;

static void log_word(uint64_t *word) {
  uint64_t n = s->log.count;
  s->log.entry[n].at = (uint64_t)((char *)word - (char *)s);
  s->log.entry[n].old = *word;
  pmem_persist(&s->log.entry[n], 16);
  s->log.count = n + 1;
  pmem_persist(&s->log.count, 8);
}
static void commit(void) {
  s->log.count = 0;
  pmem_persist(&s->log.count, 8);
}
#define LOG(bug, word) do { if (BUG != (bug)) log_word(word); } while (0)
#define FLUSH(bug, word) do { if (BUG != (bug)) pmem_persist(word, 8); } while (0)

static void insert(uint64_t key) {
  uint64_t at = 1, *head = &s->bucket[key % 2].head;
  while (s->node[at].used) ++at;
  struct node *n = &s->node[at];
  LOG(1, &n->used);
  n->used = 1; /* SITE 1 */
  n->key = key; /* SITE 7 */
  n->next = *head;
  if (BUG != 7) pmem_persist(n, sizeof *n);
  LOG(2, head);
  *head = at; /* SITE 2, SITE 8 */
  FLUSH(8, head);
  LOG(3, &s->size);
  s->size++; /* SITE 3 */
  pmem_persist(&s->size, 8);
  commit();
}
static void delete(uint64_t key) {
  uint64_t *link = &s->bucket[key % 2].head;
  while (s->node[*link].key != key) link = &s->node[*link].next;
  struct node *n = &s->node[*link];
  if (BUG == 10) {
    n->used = 0; /* SITE 10 */
    pmem_persist(&n->used, 8);
  }
  LOG(4, link);
  *link = n->next; /* SITE 4, SITE 9 */
  FLUSH(9, link);
  LOG(5, &n->used);
  n->used = 0; /* SITE 5 */
  pmem_persist(&n->used, 8);
  LOG(6, &s->size);
  s->size--; /* SITE 6 */
  pmem_persist(&s->size, 8);
  commit();
}
int main(int argc, char **argv) {
  s = pmem_map_file(argv[argc - 1], sizeof *s, PMEM_FILE_CREATE, 0600, NULL, NULL);
  if (s == NULL) return 1;
  insert(1);
  insert(3);
  delete(1);
  insert(5);
  return 0;
}
#else
static int bad(const char *why) {
  puts(why);
  return 1;
}
int main(int argc, char **argv) {
  struct set *s = aligned_alloc(64, sizeof *s);
  int fd = open(argv[argc - 1], O_RDONLY);
  if (read(fd, s, sizeof *s) != (ssize_t)sizeof *s) return 2;
  if (s->log.count > 7) return bad("the log is damaged");
  while (s->log.count > 0) {
    uint64_t n = --s->log.count;
    *(uint64_t *)((char *)s + s->log.entry[n].at) = s->log.entry[n].old;
  }
  uint64_t reached = 0, used = 0;
  for (uint64_t b = 0; b < 2; ++b)
    for (uint64_t at = s->bucket[b].head; at != 0; at = s->node[at].next) {
      if (at > 7 || ++reached > 7) return bad("a chain is damaged");
      if (!s->node[at].used) return bad("a node that is linked is free");
      if (s->node[at].key == 0 || s->node[at].key % 2 != b) return bad("a key is in a wrong place");
    }
  for (int i = 1; i < 8; ++i) used += s->node[i].used;
  if (used != reached) return bad("a node is lost");
  return reached == s->size ? 0 : bad("the size is not the number of keys");
}
#endif
