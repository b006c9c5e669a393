#define _GNU_SOURCE
/* Moves a tier to node 0 and prints the kernel's policy for a block that is taken afterwards. */
#include <nearfar/hmalloc.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void) {
  const unsigned long policy_of_address = 2; /* MPOL_F_ADDR */
  const hm_tier tier = hm_tier_create("moved", "dram");
  void* before = hm_malloc(tier, 100000);
  if (before == NULL || hm_migrate(tier, 1) != 0) return fprintf(stderr, "%s\n", hm_error()), 1;
  char* after = hm_malloc(tier, 64 << 20); /* more than the chunk that was there */
  if (after == NULL) return fprintf(stderr, "%s\n", hm_error()), 1;
  int mode = -1;
  syscall(SYS_get_mempolicy, &mode, NULL, 0, after + (63 << 20), policy_of_address);
  printf("policy %d\n", mode);
  return 0;
}
