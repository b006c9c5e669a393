/* Where libhmalloc's memory really lies on a machine of two nodes.
 *
 *   hm_nodes BYTES     fills a block of BYTES near and one far, a global variable in the far tier
 *
 * Prints, a line each: name, pages in memory on node 0, on node 1; then what a far block got that
 * asks for more than all tiers together: the name of errno, or "given".
 */
#include <errno.h>
#include <nearfar/hmalloc_var.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

HM_TIER_VAR(far) static char table[1 << 20];

static void show(const char* name, void* block, size_t bytes) {
  struct hm_pages found;
  memset(block, 1, bytes);
  if (hm_residency(block, bytes, &found) != 0) {
    perror(hm_error());
    exit(1);
  }
  printf("%s %zu %zu\n", name, found.on_node[0], found.on_node[1]);
}

int main(int count, char** arguments) {
  const size_t bytes = count == 2 ? strtoull(arguments[1], NULL, 10) : 0;
  void* near = hm_malloc(HM_NEAR, bytes);
  void* far = hm_malloc(HM_FAR, bytes);
  if (bytes == 0 || near == NULL || far == NULL) return 2;
  show("near", near, bytes);
  show("far", far, bytes);
  show("variable", table, sizeof table);
  if (hm_move(near, HM_FAR) == NULL) return 3;
  void* more = hm_malloc(HM_FAR, (size_t)64 << 20);
  if (more == NULL)
    printf("more %s\n", errno == ENOMEM ? "ENOMEM" : strerror(errno));
  else
    printf("more %s\n", hm_tier_of(more) == HM_FAR ? "far" : "spilled");
  return 0;
}
