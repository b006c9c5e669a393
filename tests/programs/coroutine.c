#define _GNU_SOURCE
/* Allocates on the stack of a coroutine whose outermost frame pointer leads to memory that cannot be
 * read; prints the tier of the block by the library that is preloaded. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { stack_bytes = 64 << 10 };

static ucontext_t outside, inside;
static void* block;

__attribute__((noinline)) void* first(size_t size) {
  void* p = malloc(size);
  __asm__ volatile("" : "+r"(p)); /* no tail call: the return address is in here */
  return p;
}
__attribute__((noinline)) void coroutine(void) {
  block = first(100);
  swapcontext(&inside, &outside);
}

int main(void) {
  int (*tier_of)(const void*) = (int (*)(const void*))dlsym(RTLD_DEFAULT, "hm_tier_of");
  char* stack = mmap(NULL, 2 * stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                     -1, 0);
  mprotect(stack + stack_bytes, stack_bytes, PROT_NONE);
  getcontext(&inside);
  inside.uc_stack.ss_sp = stack;
  inside.uc_stack.ss_size = stack_bytes;
  inside.uc_link = &outside;
  inside.uc_mcontext.gregs[REG_RBP] = (greg_t)(stack + stack_bytes + stack_bytes / 2);
  makecontext(&inside, coroutine, 0);
  swapcontext(&outside, &inside);
  printf("coroutine %d\n", tier_of(block));
  return 0;
}
