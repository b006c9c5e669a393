// A program in C whose mappings the tests look up from outside. Usage: mappings SCENARIO
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "alloclog/test_programs/report.h"

enum { mib = 1 << 20 };

ALLOCATES char* by_mmap(void* at, size_t bytes, int flags) {
  char* block =
      mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (block == MAP_FAILED) abort();
  block[0] = 1;
  return block;
}
ALLOCATES char* by_other_mmap(void* at, size_t bytes, int flags) {
  char* block =
      mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (block == MAP_FAILED) abort();
  block[0] = 2;
  return block;
}
ALLOCATES char* by_malloc(size_t bytes) {
  char* block = malloc(bytes);
  block[0] = 1;
  return block;
}

static void kinds(void) {
  char* whole = by_mmap(NULL, 4 * mib, 0);
  report("first", whole, by_mmap);
  report("last", whole + 4 * mib - 1, by_mmap);
  char* holed = by_mmap(NULL, 4 * mib, 0);
  munmap(holed + mib, mib);
  report("before hole", holed + mib - 1, by_mmap);
  report("hole", holed + mib, NULL);
  report("behind hole", holed + 2 * mib, by_mmap);
  char* reserved = by_mmap(NULL, 8 * mib, MAP_NORESERVE);
  by_other_mmap(reserved + 2 * mib, mib, MAP_FIXED);
  report("reserved", reserved + 2 * mib - 1, by_mmap);
  report("fixed", reserved + 2 * mib, by_other_mmap);
  report("reserved again", reserved + 3 * mib, by_mmap);
  report("malloc", by_malloc(100), by_malloc);
  if (mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) abort();
  show();
}

static void moved(void) {
  char* old = by_mmap(NULL, 2 * mib, 0);
  char* to = by_other_mmap(NULL, 8 * mib, 0);
  char* block = mremap(old, 2 * mib, 4 * mib, MREMAP_MAYMOVE | MREMAP_FIXED, to);
  report("moved", block + 4 * mib - 1, by_mmap);
  report("behind moved", block + 4 * mib, by_other_mmap);
  report("old", old, NULL);
  show();
  block = mremap(block, 4 * mib, mib, 0);
  report("shrunk", block + mib - 1, by_mmap);
  report("cut off", block + mib, NULL);
  show();
}

static void forked(void) {
  char* kept = by_mmap(NULL, mib, 0);
  char* dropped = by_mmap(NULL, mib, 0);
  by_malloc(100);
  report("parent", kept, by_mmap);
  show(); // the log has the parent's events
  if (fork() == 0) {
    char* own = by_other_mmap(NULL, mib, 0);
    munmap(dropped, mib);
    report("kept", kept, by_mmap);
    report("dropped", dropped, NULL);
    report("own", own, by_other_mmap);
    show();
    _exit(0);
  }
  wait(NULL);
  report("parent's", dropped, by_mmap);
  show();
}

static void counted(void) {
  for (int i = 0; i < 10; ++i)
    munmap(by_mmap(NULL, mib + 1, 0), mib + 1);
  report("kept", by_mmap(NULL, 3 * mib, 0), by_mmap);
  show();
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  if (strcmp(arguments[1], "kinds") == 0) kinds();
  if (strcmp(arguments[1], "moved") == 0) moved();
  if (strcmp(arguments[1], "forked") == 0) forked();
  if (strcmp(arguments[1], "counted") == 0) counted();
  return 0;
}
