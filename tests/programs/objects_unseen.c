// What assembly stores into an object of libpmemobj. Arguments: POOL WAY.
#include <libpmemobj.h>
#include <stdint.h>
#include <string.h>

struct root {
  uint64_t count;
  uint64_t padding[15];
  uint64_t values[32];
};

static void copy(void *to, const void *from, size_t bytes) {
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

int main(int argc, char **argv) {
  PMEMobjpool *pool = pmemobj_create(argv[1], "unseen", PMEMOBJ_MIN_POOL, 0600);
  if (argc < 3 || pool == NULL) return 2;
  struct root *root = pmemobj_direct(pmemobj_root(pool, sizeof *root));
  uint64_t values[32];
  for (int i = 0; i < 32; ++i)
    values[i] = (uint64_t)i + 1;
  TX_BEGIN(pool) {
    pmemobj_tx_add_range_direct(&root->count, sizeof root->count);
    root->count = 1;
    if (strcmp(argv[2], "logged") == 0) pmemobj_tx_add_range_direct(root->values, sizeof values);
    if (strcmp(argv[2], "plain") == 0) pmemobj_tx_add_range_direct(root->values, 8);
    if (strcmp(argv[2], "plain") == 0)
      root->values[0] = 1;
    else if (strcmp(argv[2], "persisted") != 0)
      copy(root->values, values, sizeof values);
  }
  TX_END
  if (strcmp(argv[2], "persisted") == 0) {
    copy(root->values, values, sizeof values);
    pmemobj_persist(pool, root->values, sizeof values);
  }
  for (int i = 0; i < 40; ++i) { // of objects that come and go, the library leaves data
    PMEMoid object;
    pmemobj_alloc(pool, &object, 5000 + 100 * (size_t)(i % 3), 1, NULL, NULL);
    if (i % 3 != 0) pmemobj_free(&object);
  }
  pmemobj_close(pool);
  return 0;
}
