/* Tracks which pages of its pool, the file argv[1], are stored to, as programs with checkpoints do: pages
 * are read-only until a handler of SIGSEGV opens them. Persists these pages at each checkpoint, and exits
 * with 0 if exactly the pages that were stored to were seen. With argv[2], it forgets the last store. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <libpmem.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 8 };

static char* pool;
static volatile sig_atomic_t stored[PAGES];

static void on_fault(int number, siginfo_t* info, void* context) {
  (void)number, (void)context;
  const long page = ((char*)info->si_addr - pool) / PAGE;
  if (page < 0 || page >= PAGES || stored[page]) _exit(20);
  stored[page] = 1;
  if (mprotect(pool + page * PAGE, PAGE, PROT_READ | PROT_WRITE) != 0) _exit(21);
}

/* Persists what was stored, and begins to track again. */
static void checkpoint(const char* expected, int code) {
  for (int page = 0; page < PAGES; ++page) {
    if (stored[page] != (expected[page] == 'x')) _exit(code);
    if (!stored[page]) continue;
    pmem_persist(pool + page * PAGE, PAGE);
    if (mprotect(pool + page * PAGE, PAGE, PROT_READ) != 0) _exit(22);
    stored[page] = 0;
  }
}

int main(int argc, char** argv) {
  const int file = argc > 1 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
  if (file < 0 || ftruncate(file, PAGES * PAGE) != 0) return 1;
  pool = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (pool == MAP_FAILED) return 1;
  if (pool[0] != 0) return 0;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, NULL);
  mprotect(pool, PAGES * PAGE, PROT_READ);

  volatile char* bytes = pool;
  bytes[0] = 1;
  bytes[2 * PAGE] = 1;
  bytes[2 * PAGE + 64] = 2;
  checkpoint("x.x.....", 2);
  bytes[2 * PAGE] = 3;
  atomic_fetch_add((_Atomic long*)(pool + 5 * PAGE), 7);
  checkpoint("..x..x..", 3);
  memset(pool + 4 * PAGE - 8, 5, 16); /* on two pages */
  memcpy(pool + 6 * PAGE, pool, 100);
  checkpoint("...xx.x.", 4);
  memcpy(pool + PAGE - 4, "12345678", 8);
  bytes[7 * PAGE] = 1; // FORGOTTEN
  if (argc > 2) stored[7] = 0;
  checkpoint(argc > 2 ? "xx......" : "xx.....x", 5);
  return 0;
}
