/* A skip list on libpmemobj's transactions, right with -DBUG=0. -DBUG=1..8 each make one mistake of
 * those that bug studies report of ports to persistent memory: a field that is not snapshotted
 * before it is overwritten, or that is stored after the transaction and never flushed. A SITE
 * comment marks the store that is to be named. -DCHECK makes a checker of it, a shared library.
 *
 * Usage  skip_list_obj make POOL; then, recorded, skip_list_obj run POOL */
#include <libpmemobj.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "nearfar/crash_checker.h"
#include "nearfar/crash_intrinsics.h"

#define LEVELS 3
#define KEYS 12

struct node {
  uint64_t key;
  uint64_t height;
  PMEMoid next[LEVELS];
};
struct root {
  PMEMoid first[LEVELS];
  uint64_t size;
  uint64_t sum; /* of all keys */
};

#ifndef BUG
#define BUG 0
#endif
/* What bug `n` forgets. */
#define UNLESS(n, what)                                                                            \
  do {                                                                                             \
    if (BUG != (n)) what;                                                                          \
  } while (0)
#define LOG(field) pmemobj_tx_add_range_direct(&(field), sizeof(field))

static struct node *at(PMEMoid oid) { return pmemobj_direct(oid); }

#ifndef CHECK
/* The links before `key` on each level. */
static void find(struct root *root, uint64_t key, PMEMoid **before) {
  PMEMoid *links = root->first;
  for (int level = LEVELS - 1; level >= 0; --level) {
    while (links[level].off != 0 && at(links[level])->key < key)
      links = at(links[level])->next;
    before[level] = &links[level];
  }
}

static void insert(PMEMobjpool *pool, struct root *root, uint64_t key, int height) {
  PMEMoid *before[LEVELS];
  struct node *made = NULL;
  find(root, key, before);
  TX_BEGIN(pool) {
    PMEMoid oid = pmemobj_tx_zalloc(sizeof(struct node), 1);
    made = at(oid);
    made->key = key;
    made->height = (uint64_t)height;
    for (int level = 0; level < height; ++level) {
      made->next[level] = *before[level];
      if (level == 0)
        UNLESS(1, LOG(*before[level]));
      else
        UNLESS(2, LOG(*before[level]));
      *before[level] = oid; /* SITE 1, SITE 2 */
    }
    UNLESS(3, LOG(root->size));
    root->size++; /* SITE 3 */
    UNLESS(4, LOG(root->sum));
    if (BUG != 8) root->sum += key; /* SITE 4 */
  }
  TX_END
  if (BUG == 8) root->sum += key; /* SITE 8 */
}

static void remove_key(PMEMobjpool *pool, struct root *root, uint64_t key) {
  PMEMoid *before[LEVELS];
  find(root, key, before);
  PMEMoid oid = *before[0];
  struct node *gone = at(oid);
  TX_BEGIN(pool) {
    for (int level = (int)gone->height - 1; level >= 0; --level) {
      if (level == 0)
        UNLESS(5, LOG(*before[level]));
      else
        UNLESS(6, LOG(*before[level]));
      *before[level] = gone->next[level]; /* SITE 5, SITE 6 */
    }
    LOG(root->size);
    root->size--;
    UNLESS(7, LOG(root->sum));
    root->sum -= key; /* SITE 7 */
    pmemobj_tx_free(oid);
  }
  TX_END
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  if (strcmp(arguments[1], "make") == 0) {
    PMEMobjpool *pool = pmemobj_create(arguments[2], "skip list", PMEMOBJ_MIN_POOL, 0600);
    if (pool == NULL) return 1;
    pmemobj_root(pool, sizeof(struct root));
    pmemobj_close(pool);
    return 0;
  }
  PMEMobjpool *pool = pmemobj_open(arguments[2], "skip list");
  if (pool == NULL) return 1;
  struct root *root = pmemobj_direct(pmemobj_root(pool, sizeof *root));
  static const int order[] = {5, 2, 9, 7};
  for (unsigned i = 0; i < 4; ++i) {
    nearfar_crash_begin(i);
    insert(pool, root, (uint64_t)order[i], 1 + (int)(i * 2) % LEVELS);
    nearfar_crash_end(i);
  }
  for (unsigned i = 0; i < 2; ++i) {
    nearfar_crash_begin(4 + i);
    remove_key(pool, root, (uint64_t)order[2 * i + 1]);
    nearfar_crash_end(4 + i);
  }
  pmemobj_close(pool);
  return 0;
}
#else
static int wrong(char *why, size_t bytes, const char *what) {
  snprintf(why, bytes, "%s", what);
  return NEARFAR_CRASH_BROKEN;
}

/* After `done` operations of main(): are the sizes what they must be? */
static uint64_t size_after(unsigned long done) { return done <= 4 ? done : 8 - done; }

static int look(struct root *root, const struct nearfar_crash_image *image, char *why,
                size_t bytes) {
  uint64_t size = 0, sum = 0, seen[LEVELS] = {0};
  for (int level = 0; level < LEVELS; ++level) {
    uint64_t last = 0;
    for (PMEMoid oid = root->first[level]; oid.off != 0; oid = at(oid)->next[level]) {
      struct node *node = at(oid);
      if (node->key <= last || node->key > KEYS || node->height <= (uint64_t)level)
        return wrong(why, bytes, "a link leads to something that is not a node of its level");
      last = node->key;
      seen[level] |= 1u << node->key;
      if (level == 0) ++size, sum += node->key;
    }
  }
  for (PMEMoid oid = root->first[0]; oid.off != 0; oid = at(oid)->next[0])
    for (uint64_t level = 1; level < at(oid)->height; ++level)
      if ((seen[level] & 1u << at(oid)->key) == 0)
        return wrong(why, bytes, "a node is missing on a higher level");
  if (seen[1] & ~seen[0] || seen[2] & ~seen[0])
    return wrong(why, bytes, "a higher level links what the lowest does not");
  if (size != root->size) return wrong(why, bytes, "the size is not the number of nodes");
  if (sum != root->sum) return wrong(why, bytes, "the sum is not that of the keys");
  if (size != size_after(image->acknowledged) &&
      (!image->in_flight || size != size_after(image->acknowledged + 1)))
    return wrong(why, bytes, "an acknowledged operation is lost");
  return NEARFAR_CRASH_GOOD;
}

nearfar_crash_checker check;
int check(const struct nearfar_crash_image *image, char *why, size_t bytes) {
  PMEMobjpool *pool = pmemobj_open(image->path, "skip list");
  if (pool == NULL) {
    snprintf(why, bytes, "%s", pmemobj_errormsg());
    return NEARFAR_CRASH_REFUSED;
  }
  const int found = look(pmemobj_direct(pmemobj_root(pool, sizeof(struct root))), image, why, bytes);
  pmemobj_close(pool);
  return found;
}
#endif
