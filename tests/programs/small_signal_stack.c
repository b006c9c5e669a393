#define _GNU_SOURCE
/* A signal handler on a small alternate stack, below which nothing is accessible, maps, resizes and
 * unmaps memory. Prints "ok". */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, GUARD = 8 * PAGE, BYTES = 1 << 20, ROUNDS = 20 };

static void work(void) {
  char* p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  p[0] = 1;
  p = mremap(p, BYTES, 2 * BYTES, MREMAP_MAYMOVE);
  if (p == MAP_FAILED || p[0] != 1 || munmap(p, 2 * BYTES) != 0) abort();
}

static void handle(int number) {
  (void)number;
  work();
}

int main(void) {
  work(); /* the dynamic linker binds the functions: it uses more of the stack */
  const stack_t stack = {.ss_size = (size_t)sysconf(_SC_MINSIGSTKSZ) + 1024,
                         .ss_sp = (char*)mmap(NULL, GUARD + 16 * PAGE, PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) +
                                  GUARD};
  mprotect((char*)stack.ss_sp - GUARD, GUARD, PROT_NONE);
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
  if (sigaltstack(&stack, NULL) != 0 || sigaction(SIGUSR1, &action, NULL) != 0) return 1;
  for (int i = 0; i < ROUNDS; ++i) raise(SIGUSR1);
  puts("ok");
  return 0;
}
