/* hm_migrate(): the pages of a tier go to other nodes, and new ones after them.
 *
 *   hm_migrate BYTES     a far block of BYTES, moved to node 0 and back
 *
 * Prints, a line each: what was done, pages of the block on node 0, on node 1; then the names of
 * errno for nodes that are not there, and for a tier that was never made.
 */
#include <errno.h>
#include <nearfar/hmalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void show(const char* name, void* block, size_t bytes) {
  struct hm_pages found;
  if (hm_residency(block, bytes, &found) != 0) exit(1);
  printf("%s %zu %zu\n", name, found.on_node[0], found.on_node[1]);
}

static void refuse(const char* name, hm_tier tier, unsigned long nodes) {
  printf("%s %s\n", name, hm_migrate(tier, nodes) == 0 ? "done" : strerrorname_np(errno));
}

int main(int count, char** arguments) {
  const size_t bytes = count == 2 ? strtoull(arguments[1], NULL, 10) : 0;
  char* block = hm_malloc(HM_FAR, bytes);
  if (bytes == 0 || block == NULL) return 2;
  memset(block, 7, bytes);
  show("made", block, bytes);
  if (hm_migrate(HM_FAR, 1ul << 0) != 0) return 3;
  show("near", block, bytes);
  char* fresh = hm_malloc(HM_FAR, bytes);
  if (fresh == NULL) return 4;
  show("fresh", memset(fresh, 1, bytes), bytes);
  if (hm_migrate(HM_FAR, 1ul << 1) != 0) return 5;
  show("far", block, bytes);
  for (size_t i = 0; i < bytes; ++i)
    if (block[i] != 7) return 6;
  refuse("absent", HM_FAR, 1ul << 5);
  refuse("unmade", 7, 1ul << 0);
  const hm_tier file = hm_tier_create("shared", "shm:,capacity=1MiB");
  refuse("file", file, 1ul << 0);
  return 0;
}
