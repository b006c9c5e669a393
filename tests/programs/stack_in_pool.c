/* Runs a function on a stack that lies in the pool, the file argv[1]: by argv[2], that of a context, of a
 * thread, of signal handlers, or one that assembly switches to. "deep" overflows the usual stack, "null"
 * stores to no memory, and "none" does neither. Exits with 0 if all was run. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <libpmem.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { STACK = 256 << 10, BYTES = STACK + 4096 };

static char* pool;
static volatile int runs;
static ucontext_t outside, inside;

__attribute__((noinline)) static void run(void) {
  volatile char local[64];
  for (int i = 0; i < 64; ++i)
    local[i] = (char)i;
  runs = local[63] == 63;
}
static void* run_in_thread(void* unused) {
  run();
  return unused;
}
static void run_in_handler(int number) {
  (void)number;
  run();
}
static void switch_stack(void* top) {
  __asm__ volatile("mov %%rsp, %%rbx\n\tmov %0, %%rsp\n\tcall *%1\n\tmov %%rbx, %%rsp"
                   :
                   : "r"(top), "r"(run)
                   : "rbx", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory");
}
__attribute__((noinline)) static int overflow(volatile char* outer) {
  volatile char local[4096];
  local[0] = outer[0];
  return overflow(local) + local[0];
}

int main(int argc, char** argv) {
  const int file = argc == 3 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
  if (file < 0 || ftruncate(file, BYTES) != 0) return 1;
  pool = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (pool == MAP_FAILED) return 1;
  char* const stack = pool + 4096;
  *(volatile char*)pool = 1;
  pmem_persist(pool, 1);
  if (strcmp(argv[2], "context") == 0) {
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = STACK;
    inside.uc_link = &outside;
    makecontext(&inside, run, 0);
    swapcontext(&outside, &inside);
  } else if (strcmp(argv[2], "thread") == 0) {
    pthread_attr_t how;
    pthread_t thread;
    pthread_attr_init(&how);
    pthread_attr_setstack(&how, stack, STACK);
    if (pthread_create(&thread, &how, run_in_thread, NULL) != 0) return 2;
    pthread_join(thread, NULL);
  } else if (strcmp(argv[2], "handler") == 0) {
    const stack_t other = {.ss_sp = stack, .ss_size = STACK};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = run_in_handler;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
    if (sigaltstack(&other, NULL) != 0) return 2;
    raise(SIGUSR1);
  } else if (strcmp(argv[2], "assembly") == 0) {
    switch_stack(stack + STACK - 64);
  } else if (strcmp(argv[2], "deep") == 0) {
    return overflow(pool);
  } else if (strcmp(argv[2], "null") == 0) {
    volatile char* volatile none = NULL;
    *none = 1;
  } else {
    run();
  }
  return runs != 1;
}
