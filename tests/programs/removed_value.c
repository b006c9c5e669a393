/* A map on libpmemobj's atomic lists. With -DBUG=1 removal frees the entry,
 * shrinks the buckets, which allocates memory again, and only then reads the value that it returns: the
 * use after free of PMDK's example hm_atomic_remove (1.12), rebuilt. -DCHECK makes a checker of it,
 * a shared library.
 *
 * Usage  removed_value make POOL; then, recorded, removed_value run POOL */
#include <libpmemobj.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "nearfar/crash_checker.h"
#include "nearfar/crash_intrinsics.h"

#ifndef BUG
#define BUG 0
#endif

POBJ_LAYOUT_BEGIN(removed);
POBJ_LAYOUT_ROOT(removed, struct root);
POBJ_LAYOUT_TOID(removed, struct entry);
POBJ_LAYOUT_TOID(removed, struct buckets);
POBJ_LAYOUT_END(removed);

/* Both take six chunks of libpmemobj's, so that new buckets fit best where an entry was. */
struct entry {
  uint64_t key;
  uint64_t value; /* 1000 + key */
  POBJ_LIST_ENTRY(struct entry) list;
  char text[1500000];
};
struct buckets {
  uint64_t count;
  uint64_t first[187504];
};
#define NOTHING 7

POBJ_LIST_HEAD(entries, struct entry);
struct root {
  struct entries list;
  TOID(struct buckets) buckets;
  uint64_t removed; /* the value that was removed last */
};

#ifndef CHECK
static int fill_entry(PMEMobjpool *pool, void *at, void *key) {
  struct entry *entry = at;
  entry->key = *(uint64_t *)key;
  entry->value = 1000 + entry->key;
  pmemobj_persist(pool, entry, 2 * sizeof(uint64_t));
  return 0;
}
static int fill_buckets(PMEMobjpool *pool, void *at, void *count) {
  struct buckets *buckets = at;
  buckets->count = *(uint64_t *)count;
  memset(buckets->first, 0, buckets->count * sizeof(uint64_t));
  pmemobj_persist(pool, buckets, (1 + buckets->count) * sizeof(uint64_t));
  return 0;
}

/* New buckets take the place of the old ones. */
static void shrink(PMEMobjpool *pool, struct root *root) {
  uint64_t count = 1;
  TOID(struct buckets) made;
  POBJ_NEW(pool, &made, struct buckets, fill_buckets, &count);
  pmemobj_free(&root->buckets.oid);
  root->buckets = made;
  pmemobj_persist(pool, &root->buckets, sizeof root->buckets);
}

static uint64_t remove_first(PMEMobjpool *pool, struct root *root) {
  TOID(struct entry) gone = POBJ_LIST_FIRST(&root->list);
#if BUG == 0
  const uint64_t value = D_RO(gone)->value;
#endif
  POBJ_LIST_REMOVE_FREE(pool, &root->list, gone, list);
  shrink(pool, root);
#if BUG == 1
  const uint64_t value = ((volatile struct entry *)pmemobj_direct(gone.oid))->value;
#endif
  return value;
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  const int making = strcmp(arguments[1], "make") == 0;
  PMEMobjpool *pool = making ? pmemobj_create(arguments[2], "removed", 4 * PMEMOBJ_MIN_POOL, 0600)
                             : pmemobj_open(arguments[2], "removed");
  if (pool == NULL) return 1;
  struct root *root = pmemobj_direct(pmemobj_root(pool, sizeof *root));
  if (making) {
    uint64_t buckets = 4;
    for (uint64_t key = 1; key <= 3; ++key)
      POBJ_LIST_INSERT_NEW_HEAD(pool, &root->list, list, sizeof(struct entry), fill_entry, &key);
    POBJ_NEW(pool, &root->buckets, struct buckets, fill_buckets, &buckets);
    root->removed = NOTHING;
    pmemobj_persist(pool, &root->removed, sizeof root->removed);
  } else {
    nearfar_crash_begin(0);
    root->removed = remove_first(pool, root); /* SITE 1 */
    pmemobj_persist(pool, &root->removed, sizeof root->removed);
    nearfar_crash_end(0);
  }
  pmemobj_close(pool);
  return 0;
}
#else
nearfar_crash_checker check;
int check(const struct nearfar_crash_image *image, char *why, size_t bytes) {
  PMEMobjpool *pool = pmemobj_open(image->path, "removed");
  if (pool == NULL) {
    snprintf(why, bytes, "%s", pmemobj_errormsg());
    return NEARFAR_CRASH_REFUSED;
  }
  struct root *root = pmemobj_direct(pmemobj_root(pool, sizeof *root));
  const uint64_t removed = root->removed;
  pmemobj_close(pool);
  if (removed == NOTHING ? image->acknowledged == 0 : removed == 1003) return NEARFAR_CRASH_GOOD;
  snprintf(why, bytes, "the value that was removed is %lu, not 1003", (unsigned long)removed);
  return NEARFAR_CRASH_BROKEN;
}
#endif
