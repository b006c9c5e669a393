#define _GNU_SOURCE
/* Fills memory of the heap and mappings, and prints for each: name, its pages in memory on node 0, on
 * node 1; then how many mappings of it the kernel interleaves by weights. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MIB = 1 << 20, PAGE = 4096, SMALL = 16384 };

/* Not static, so that the name stays; no tail call, so that the return address is in it. */
__attribute__((noinline)) char* array(size_t bytes) {
  char* p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) abort();
  __asm__ volatile("" : "+r"(p));
  return p;
}

static void show(const char* name, char* at, size_t bytes) {
  size_t found[2] = {0, 0};
  for (size_t i = 0; i < bytes; i += PAGE) {
    void* page = at + i;
    int node = -1;
    if (syscall(SYS_move_pages, 0, 1ul, &page, NULL, &node, 0) != 0) abort();
    if (node == 0 || node == 1) ++found[node];
  }
  printf("%s %zu %zu\n", name, found[0], found[1]);
}

static void fill_and_show(const char* name, char* at, size_t bytes) {
  memset(at, 3, bytes);
  show(name, at, bytes);
}

static int interleaved_mappings(void) {
  char line[4096];
  int count = 0;
  FILE* file = fopen("/proc/self/numa_maps", "r");
  while (fgets(line, sizeof line, file) != NULL)
    count += strstr(line, "weighted interleave") != NULL;
  fclose(file);
  return count;
}

int main(void) {
  char* mapped = array(16 * MIB);
  fill_and_show("mapped", mapped, 16 * MIB);
  char* grown = mremap(mapped, 16 * MIB, 32 * MIB, MREMAP_MAYMOVE);
  if (grown == MAP_FAILED) abort();
  for (size_t i = 0; i < 16 * MIB; i += PAGE)
    if (grown[i] != 3) abort();
  fill_and_show("grown", grown, 32 * MIB);
  char* block = malloc(48 * MIB);
  fill_and_show("block", block, 48 * MIB);
  static char* small[SMALL];
  for (int i = 0; i < SMALL; ++i)
    memset(small[i] = malloc(1000), 1, 1000);
  printf("kernel %d 0\n", interleaved_mappings());
  for (int i = 0; i < SMALL; ++i)
    free(small[i]);
  free(block);
  munmap(grown, 32 * MIB);
  return 0;
}
