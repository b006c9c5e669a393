/* Two numbers that a transaction of libpmemobj keeps equal, in a library that -DHOST makes a program
 * open by dlopen with RTLD_LOCAL: libpmemobj is seen by the library alone. With -DBUG=1 one of them
 * is not snapshotted. -DCHECK makes a checker of it, a shared library.
 *
 * Usage  host LIBRARY make POOL; then, recorded, host LIBRARY run POOL */
#ifdef HOST
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int count, char **arguments) {
  if (count != 4) return 2;
  void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  int (*work)(const char *, int) = library ? dlsym(library, "work") : NULL;
  if (work == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  return work(arguments[3], strcmp(arguments[2], "make") == 0);
}
#else
#include <libpmemobj.h>
#include <stddef.h>
#include <stdio.h>

#include "nearfar/crash_checker.h"
#include "nearfar/crash_intrinsics.h"

struct pair {
  long first, second;
};

#ifndef CHECK
int work(const char *file, int making) {
  PMEMobjpool *pool = making ? pmemobj_create(file, "pair", PMEMOBJ_MIN_POOL, 0600)
                             : pmemobj_open(file, "pair");
  if (pool == NULL) return 1;
  const PMEMoid at = pmemobj_root(pool, sizeof(struct pair));
  struct pair *pair = pmemobj_direct(at);
  if (!making) {
    nearfar_crash_begin(0);
    TX_BEGIN(pool) {
      pmemobj_tx_add_range_direct(&pair->first, sizeof pair->first);
#if BUG == 0
      pmemobj_tx_add_range(at, offsetof(struct pair, second), sizeof pair->second);
#endif
      pair->first = 1;
      pair->second = 1; /* SITE 1 */
    }
    TX_END
    nearfar_crash_end(0);
  }
  pmemobj_close(pool);
  return 0;
}
#else
nearfar_crash_checker check;
int check(const struct nearfar_crash_image *image, char *why, size_t bytes) {
  PMEMobjpool *pool = pmemobj_open(image->path, "pair");
  if (pool == NULL) {
    snprintf(why, bytes, "%s", pmemobj_errormsg());
    return NEARFAR_CRASH_REFUSED;
  }
  const struct pair *pair = pmemobj_direct(pmemobj_root(pool, sizeof *pair));
  const long first = pair->first, second = pair->second;
  pmemobj_close(pool);
  if (first == second && first >= image->acknowledged) return NEARFAR_CRASH_GOOD;
  snprintf(why, bytes, "%ld and %ld differ, or are too old", first, second);
  return NEARFAR_CRASH_BROKEN;
}
#endif
#endif
