/* Fills a pool of libpmemobj with small objects, for benchmarks/pool_objects.sh.
 * Usage: pool_fill FILE MIB OBJECTS BYTES; every object links the one before it, the root the last. */
#include <libpmemobj.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments) {
  if (count != 5) return 2;
  PMEMobjpool *pool =
      pmemobj_create(arguments[1], "fill", strtoull(arguments[2], NULL, 10) << 20, 0600);
  if (pool == NULL) return fprintf(stderr, "%s\n", pmemobj_errormsg()), 1;
  const uint64_t objects = strtoull(arguments[3], NULL, 10);
  const size_t bytes = strtoull(arguments[4], NULL, 10);
  PMEMoid *root = pmemobj_direct(pmemobj_root(pool, sizeof(PMEMoid)));
  PMEMoid last = OID_NULL;
  for (uint64_t i = 0; i < objects; ++i) {
    PMEMoid made;
    if (pmemobj_alloc(pool, &made, bytes, 1 + i % 3, NULL, NULL) != 0)
      return fprintf(stderr, "%s\n", pmemobj_errormsg()), 1;
    *(PMEMoid *)pmemobj_direct(made) = last;
    last = made;
  }
  *root = last;
  pmemobj_persist(pool, root, sizeof *root);
  pmemobj_close(pool);
  return 0;
}
