#define _GNU_SOURCE
/* Maps memory in several ways; prints a line for each: name, the kernel's memory policy there (0: the
 * default, 1: preferred nodes), or another number that a line's name describes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MIB = 1 << 20, OF_ADDRESS = 2 };
static const int any = MAP_PRIVATE | MAP_ANONYMOUS, usable = PROT_READ | PROT_WRITE;

char zeroed[4 * MIB] __attribute__((aligned(4096)));
char filled[2 * MIB] __attribute__((aligned(4096))) = {1};

/* Not static, so that their names stay; no tail call, so that the return address is in them. */
#define SITE(name)                                                                         \
  __attribute__((noinline)) char* name(void* at, size_t bytes, int protection, int flags) { \
    void* p = mmap(at, bytes, protection, flags, -1, 0);                                   \
    __asm__ volatile("" : "+r"(p));                                                        \
    return p;                                                                              \
  }
SITE(first)
SITE(second)
SITE(ranged)
SITE(reserve)
SITE(commit)

__attribute__((noinline)) char* through(size_t bytes) {
  char* p = first(NULL, bytes, usable, any);
  __asm__ volatile("" : "+r"(p));
  return p;
}

__attribute__((noinline)) char* resize(char* old, size_t old_bytes, size_t bytes, void* to) {
  void* p = mremap(old, old_bytes, bytes, MREMAP_MAYMOVE | (to == NULL ? 0 : MREMAP_FIXED), to);
  __asm__ volatile("" : "+r"(p));
  return p;
}

static void show(const char* name, const char* at) {
  int mode = -1;
  if (syscall(SYS_get_mempolicy, &mode, NULL, 0, at, OF_ADDRESS) != 0) mode = -errno;
  printf("%s %d\n", name, mode);
}

static void show_resized(void) {
  char* old = first(NULL, MIB, usable, any);
  memset(old, 5, MIB);
  char* place = second(NULL, 8 * MIB, PROT_NONE, any | MAP_NORESERVE);
  char* grown = resize(old, MIB, 4 * MIB, place);
  show("grown", grown);
  show("grown-end", grown + 3 * MIB);
  printf("contents-grown %d\n", grown[MIB - 1]);
  char* again = second(old, MIB, usable, any | MAP_FIXED);
  show("mapped-again", again);
  char* less = resize(grown, 4 * MIB, MIB, NULL);
  show("less", less);
  char* behind = second(less + 2 * MIB, MIB, usable, any | MAP_FIXED);
  show("behind-less", behind);
}

static void show_reserved(void) {
  char* space = reserve(NULL, 16 * MIB, PROT_NONE, any | MAP_NORESERVE);
  mprotect(space, MIB, usable);
  space[0] = 1;
  show("protected", space);
  show("committed", commit(space + 4 * MIB, MIB, usable, any | MAP_FIXED));
  show("committed-beyond", commit(space + 12 * MIB, MIB, usable, any | MAP_FIXED));
  show("not-reserved", commit(NULL, MIB, usable, any));
}

static void show_files(void) {
  show("shared", first(NULL, MIB, usable, MAP_SHARED | MAP_ANONYMOUS));
  const int fd = memfd_create("table", 0);
  if (ftruncate(fd, MIB) != 0) exit(3);
  show("file", mmap(NULL, MIB, usable, MAP_SHARED, fd, 0));
  show("file-private", mmap(NULL, MIB, usable, MAP_PRIVATE, fd, 0));
}

static void show_errors(void) {
  errno = 77;
  char* p = first(NULL, MIB, usable, any);
  printf("errno-kept %d\n", errno);
  munmap(p, MIB);
  printf("errno-kept-by-munmap %d\n", errno);
  printf("failure %d\n", first(NULL, 0, usable, any) == MAP_FAILED ? errno : 0);
  printf("failed-munmap %d\n", munmap(p + 1, MIB) == -1 ? errno : 0);
  printf("failed-mremap %d\n", resize(p + 1, MIB, MIB, NULL) == MAP_FAILED ? errno : 0);
}

int main(void) {
  show("first", first(NULL, MIB, usable, any));
  show("through", through(MIB));
  char* large = second(NULL, 3 * MIB, usable, any);
  show("second", large);
  char* parts = ranged(NULL, 8 * MIB, usable, any);
  show("range-0", parts);
  show("range-1M", parts + MIB);
  show("range-4M", parts + 4 * MIB);
  parts[MIB] = 6;
  parts[8 * MIB - 1] = 7;
  parts = resize(parts, 8 * MIB, 16 * MIB, NULL);
  show("range-moved-1M", parts + MIB);
  show("range-moved-4M", parts + 4 * MIB);
  show("range-moved-12M", parts + 12 * MIB);
  printf("contents-moved %d\n", 10 * parts[MIB] + parts[8 * MIB - 1]);
  show("populated", first(NULL, MIB, usable, any | MAP_POPULATE));
  show_resized();
  show_reserved();
  show_files();
  show_errors();
  show("zeroed", zeroed);
  show("zeroed-end", zeroed + sizeof zeroed - 1);
  show("filled", filled);
  show("brk", sbrk(MIB));
  fflush(stdout);
  if (fork() == 0) {
    show("child", large);
    show("child-new", first(NULL, MIB, usable, any));
    return 0;
  }
  wait(NULL);
  return 0;
}
