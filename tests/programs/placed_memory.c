#define _GNU_SOURCE
/* Fills mapped memory and a global array, and prints for each: name, its pages in memory on node 0, on
 * node 1. With an argument, maps and fills as many MiB at a site of their own at the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MIB = 1 << 20, PAGE = 4096 };
static const int any = MAP_PRIVATE | MAP_ANONYMOUS, usable = PROT_READ | PROT_WRITE;

char table[8 * MIB] __attribute__((aligned(4096)));
char filled[2 * MIB] __attribute__((aligned(4096))) = {1};

/* Not static, so that their names stay; no tail call, so that the return address is in them. */
#define SITE(name)                                                                         \
  __attribute__((noinline)) char* name(void* at, size_t bytes, int protection, int flags) { \
    void* p = mmap(at, bytes, protection, flags, -1, 0);                                   \
    if (p == MAP_FAILED) abort();                                                          \
    __asm__ volatile("" : "+r"(p));                                                        \
    return p;                                                                              \
  }
SITE(array)
SITE(ranged)
SITE(reserve)
SITE(shared)
SITE(much)

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

int main(int count, char** arguments) {
  fill_and_show("array", array(NULL, 16 * MIB, usable, any), 16 * MIB);
  char* sized = mmap(NULL, 12 * MIB, usable, any, -1, 0);
  fill_and_show("sized", sized, 12 * MIB);
  char* populated = mmap(NULL, 12 * MIB, usable, any | MAP_POPULATE, -1, 0);
  show("populated", populated, 12 * MIB);
  char* parts = ranged(NULL, 16 * MIB, usable, any);
  fill_and_show("part-0", parts, 4 * MIB);
  fill_and_show("part-4M", parts + 4 * MIB, 8 * MIB);
  fill_and_show("part-12M", parts + 12 * MIB, 4 * MIB);
  char* space = reserve(NULL, 64 * MIB, PROT_NONE, any | MAP_NORESERVE);
  mprotect(space, 4 * MIB, usable);
  fill_and_show("protected", space, 4 * MIB);
  char* committed = mmap(space + 32 * MIB, 4 * MIB, usable, any | MAP_FIXED, -1, 0);
  fill_and_show("committed", committed, 4 * MIB);
  char* buffers = shared(NULL, 8 * MIB, usable, MAP_SHARED | MAP_ANONYMOUS);
  fflush(stdout);
  if (fork() == 0) {
    memset(buffers, 5, 8 * MIB);
    _exit(0);
  }
  wait(NULL);
  fill_and_show("shared", buffers, 8 * MIB);
  fill_and_show("table", table, sizeof table);
  show("filled", filled, sizeof filled);
  fill_and_show("near", mmap(NULL, 5 * MIB, usable, any, -1, 0), 5 * MIB);
  const size_t more = count == 2 ? strtoull(arguments[1], NULL, 10) * MIB : 0;
  if (more > 0) fill_and_show("much", much(NULL, more, usable, any), more);
  return 0;
}
