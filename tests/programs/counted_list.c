// A list with the number of its nodes, in a pool of libpmemobj. Three nodes are added, each in a
// transaction. Arguments: POOL [unlogged]. On an image whose number is wrong, it ends with 7.
#include <libpmemobj.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

struct root {
  uint64_t count, unused[16];
  PMEMoid head;
};
struct node {
  PMEMoid next;
};

static uint64_t length(PMEMoid at) {
  uint64_t count = 0;
  for (; !OID_IS_NULL(at); at = ((struct node *)pmemobj_direct(at))->next)
    ++count;
  return count;
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  const int is_new = access(argv[1], F_OK) != 0;
  PMEMobjpool *const pool = is_new ? pmemobj_create(argv[1], "list", PMEMOBJ_MIN_POOL, 0600)
                                   : pmemobj_open(argv[1], "list");
  if (pool == NULL) return fprintf(stderr, "%s\n", pmemobj_errormsg()), 1;
  struct root *const root = pmemobj_direct(pmemobj_root(pool, sizeof *root));
  if (length(root->head) != root->count) return 7;
  for (int i = 0; i < 3; ++i) {
    TX_BEGIN(pool) {
      const PMEMoid made = pmemobj_tx_zalloc(sizeof(struct node), 1);
      ((struct node *)pmemobj_direct(made))->next = root->head;
      if (argc == 2) pmemobj_tx_add_range_direct(&root->head, sizeof root->head);
      root->head = made;
      pmemobj_tx_add_range_direct(&root->count, sizeof root->count);
      root->count++;
    }
    TX_END
  }
  pmemobj_close(pool);
  return 0;
}
