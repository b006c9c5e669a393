/* One error or waste of each kind on a mapped file. Arguments: the pool, and whether it fails. */
#include <libpmem.h>
#include <stdlib.h>

struct lines {
  long word[8];
};

int main(int count, char** arguments) {
  if (count != 3) return 2;
  struct lines* pool = pmem_map_file(arguments[1], 1 << 20, PMEM_FILE_CREATE, 0600, NULL, NULL);
  if (pool == NULL) return 2;
  pool[0].word[0] = 1; /* SITE unflushed */
  pool[1].word[0] = 1; /* SITE unfenced */
  pool[2].word[0] = 1;
  pmem_persist(&pool[2], sizeof pool[2]);
  pmem_persist(&pool[2], sizeof pool[2]); /* SITE needless_flush */
  pool[3].word[0] = 1;
  pmem_flush(&pool[3], sizeof pool[3]);
  pmem_flush(&pool[3], sizeof pool[3]); /* SITE repeated_flush */
  pmem_drain();
  pmem_flush(&pool[1], sizeof pool[1]);
  return atoi(arguments[2]);
}
