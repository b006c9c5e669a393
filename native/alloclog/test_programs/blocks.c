// A program in C whose blocks the tests look up from outside. Usage: blocks SCENARIO
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "alloclog/test_programs/report.h"

ALLOCATES void* by_malloc(size_t bytes) {
  char* block = malloc(bytes);
  if (block != NULL) block[0] = 1;
  return block;
}
ALLOCATES void* by_other_malloc(size_t bytes) {
  char* block = malloc(bytes);
  if (block != NULL) block[0] = 2;
  return block;
}
ALLOCATES void* by_calloc(size_t bytes) {
  char* block = calloc(1, bytes);
  block[0] = 1;
  return block;
}
ALLOCATES void* by_realloc(void* old, size_t bytes) {
  char* block = realloc(old, bytes);
  block[0] = 1;
  return block;
}
ALLOCATES void* by_memalign(size_t alignment, size_t bytes) {
  char* block = memalign(alignment, bytes);
  block[0] = 1;
  return block;
}
ALLOCATES void* by_posix_memalign(size_t alignment, size_t bytes) {
  void* block = NULL;
  if (posix_memalign(&block, alignment, bytes) != 0) abort();
  return block;
}

/// As code without frame pointers does: the register has another value.
ALLOCATES void* by_hidden_caller(size_t bytes);
__asm__(".globl by_hidden_caller\n"
        "by_hidden_caller:\n"
        "  push %rbp\n"
        "  xor %ebp, %ebp\n"
        "  call malloc@PLT\n"
        "  pop %rbp\n"
        "  ret\n");

static void* at(void* block, size_t offset) { return (char*)block + offset; }

static void report_ends(const char* label, void* block, size_t bytes, const void* function) {
  report(label, block, function);
  report(label, at(block, bytes / 2), function);
  report(label, at(block, bytes - 1), function);
}

static void every_kind(void) {
  const size_t sizes[] = {100, 5000, 31 << 10, 33 << 10, 100 << 10, 1 << 20, 5 << 20, 64 << 20};
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    report_ends("malloc", by_malloc(sizes[i]), sizes[i], by_malloc);
    report_ends("calloc", by_calloc(sizes[i]), sizes[i], by_calloc);
    report_ends("realloc", by_realloc(NULL, sizes[i]), sizes[i], by_realloc);
    report_ends("resized", by_realloc(by_malloc(sizes[i] / 2), sizes[i]), sizes[i], by_malloc);
    report_ends("memalign", by_memalign(4096, sizes[i]), sizes[i], by_memalign);
    report_ends("posix_memalign", by_posix_memalign(256, sizes[i]), sizes[i], by_posix_memalign);
  }
  report("stack", &sizes, NULL);
  report("code", by_malloc, NULL);
  show();
}

/// Addresses that had other blocks before: large over small, small over large, and none.
static void reused(void) {
  enum { small = 200, count = 5000, large = count * small };
  void* blocks[count];
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  for (int i = 0; i < count; ++i)
    blocks[i] = by_malloc(small);
  void* top = by_malloc(small); // keeps the heap from shrinking
  for (int i = 0; i < count; ++i)
    free(blocks[i]);
  char* block = by_other_malloc(large);
  for (size_t offset = 0; offset < large; offset += 4000)
    report("large", block + offset, by_other_malloc);
  show();
  free(block);
  for (int i = 0; i < count; ++i)
    report("small", at(by_malloc(small), small - 1), by_malloc);
  free(top);
  show();
}

/// Blocks that are freed, or moved, before the test looks.
static void freed(void) {
  mallopt(M_MMAP_THRESHOLD, 512 << 10); // so that no other block gets their memory
  void* small = by_malloc(1 << 20);
  void* large = by_malloc(50 << 20);
  char* moved = by_malloc(40 << 20);
  char* behind = by_other_malloc(40 << 20); // so that it cannot grow in place
  free(small);
  free(large);
  report_ends("was freed", small, 1 << 20, by_malloc);
  report_ends("was freed", large, 50 << 20, by_malloc);
  char* now = by_realloc(moved, 400 << 20);
  if (now == moved || behind == NULL) abort();
  report_ends("was moved", moved, 20 << 20, by_malloc);
  report_ends("moved", now, 400 << 20, by_malloc);
  show();
  free(now);
  void* again = by_other_malloc(400 << 20);
  report_ends("again", again, 400 << 20, by_other_malloc);
  show();
}

/// A child that has blocks of its parent, frees some, and allocates its own.
static void forked(void) {
  void* kept = by_malloc(500);
  void* large = by_malloc(1 << 20);
  void* freed = by_malloc(300);
  void* freed_large = by_malloc(3 << 20);
  // Its usable bytes, which a child frees, reach the end of a unit that the requested ones do not.
  void* freed_aligned = aligned_alloc(2 << 20, (4 << 20) - 5000);
  if (fork() == 0) {
    free(freed);
    free(freed_large);
    free(freed_aligned);
    void* own = by_other_malloc(300);
    void* own_large = by_other_malloc(200 << 10);
    report("kept", at(kept, 499), by_malloc);
    report("kept large", at(large, 600 << 10), by_malloc);
    report("own", own, by_other_malloc);
    report("own large", at(own_large, 100 << 10), by_other_malloc);
    report("freed large", at(freed_large, (3 << 20) - 5000), NULL);
    report("freed aligned", at(freed_aligned, (4 << 20) - 6000), NULL);
    show();
    _exit(0);
  }
  wait(NULL);
  report("parent's", at(freed_large, 2 << 20), by_malloc);
  report("parent's", at(freed, 299), by_malloc);
  show();
}

static void executed(const char* program) {
  report("before", by_malloc(100), by_malloc);
  show();
  execl(program, program, "kinds", (char*)NULL);
  abort();
}

/// A descriptor that the program does not know is closed, and its child still joins.
static void closed_descriptors(void) {
  report("first", by_malloc(100), by_malloc);
  for (int fd = 3; fd < 256; ++fd)
    if (close(fd) == 0) abort(); // the log keeps none open
  forked();
}

static void limit(int resource, rlim_t value) {
  const struct rlimit now = {value, value};
  if (setrlimit(resource, &now) != 0) abort();
}

static void unlogged(void) {
  report("unlogged", by_malloc(100), NULL);
  report("unlogged", by_realloc(by_malloc(100), 100 << 10), NULL);
  show();
}

/// Where a child cannot open or map the log, it runs without.
static void limited(int resource, rlim_t value) {
  limit(resource, value);
  if (fork() == 0) {
    unlogged();
    _exit(0);
  }
  wait(NULL);
}

/// Failed calls, and frees of nothing, leave everything as it is.
static void failures(void) {
  volatile size_t too_large = SIZE_MAX / 2;
  void* block = by_malloc(500);
  void* large = by_malloc(1 << 20);
  if (by_malloc(too_large) != NULL || realloc(block, too_large) != NULL ||
      realloc(large, too_large) != NULL)
    abort();
  free(NULL);
  report("block", block, by_malloc);
  report("large", at(large, 1 << 19), by_malloc);
  void* emptied = by_malloc(100 << 10);
  if (realloc(emptied, 0) != NULL) abort();
  report("emptied", at(emptied, 50 << 10), NULL);
  show();
}

/// Figures that the counters are compared with: sizes below and above that of large blocks.
static void counted(void) {
  enum { small = 1000, count = 20000 };
  static void* blocks[count];
  for (int i = 0; i < count; ++i)
    blocks[i] = by_malloc(small);
  for (int i = 0; i < count / 2; ++i)
    free(blocks[i]);
  for (int i = 0; i < 10; ++i)
    free(by_other_malloc(1 << 20));
  report("small", blocks[count - 1], by_malloc);
  report("large", by_other_malloc(1 << 20), by_other_malloc);
  show();
}

/// Blocks of several sizes from one call whose callers are hidden.
static void hidden(void) {
  const size_t sizes[] = {40, 60, 4096, 4368, 4600, 1 << 20, (2 << 20) - 1};
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; ++i)
    report_ends("hidden", by_hidden_caller(sizes[i]), sizes[i], by_hidden_caller);
  report("resized", by_realloc(by_hidden_caller(5000), 1 << 20), by_hidden_caller);
  show();
}

/// Blocks that grow and shrink: their growth is counted.
static void resized(void) {
  enum { count = 20000 };
  for (int i = 0; i < count; ++i)
    free(realloc(realloc(by_malloc(500), 1000), 400));
  char* large = by_other_malloc(64 << 10);
  for (size_t bytes = 128 << 10; bytes <= 16 << 20; bytes *= 2)
    large = realloc(large, bytes);
  large = realloc(large, 100 << 10);
  report("small", by_malloc(500), by_malloc);
  report("large", large, by_other_malloc);
  show();
}

/// Blocks of all sizes, allocated, resized and freed in any order.
static void any_order(void) {
  enum { blocks = 400, steps = 20000, stops = 4 };
  static struct {
    char* begin;
    size_t bytes;
    const void* function;
  } live[blocks];
  uint64_t random = 1;
  for (int step = 1; step <= steps; ++step) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const size_t i = (random >> 33) % blocks;
    const size_t bytes = 1 + (random >> 12) % ((size_t)16 << (random >> 59) % 18);
    const int resize = live[i].begin != NULL && (random >> 57) % 4 == 0;
    const int first = (random >> 56) % 2 == 0;
    if (!resize) free(live[i].begin);
    live[i].begin = resize  ? by_realloc(live[i].begin, bytes)
                    : first ? by_malloc(bytes)
                            : by_other_malloc(bytes);
    live[i].bytes = bytes;
    if (!resize) live[i].function = first ? by_malloc : by_other_malloc;
    if (step % (steps / stops) != 0) continue;
    for (size_t b = 0; b < blocks; ++b)
      if (live[b].begin != NULL) report_ends("any", live[b].begin, live[b].bytes, live[b].function);
    show();
  }
}

/// The time of a call of malloc() and free(), in picoseconds.
static void timed(void) {
  enum { pairs = 5000000 };
  struct timespec begin;
  struct timespec end;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  for (int i = 0; i < pairs; ++i)
    free(by_malloc(64));
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  const double ns =
      1e9 * (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec);
  printf("picoseconds %ju 0\n", (uintmax_t)(1e3 * ns / pairs));
  show();
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const char* scenario = arguments[1];
  const char* self = "/proc/self/exe";
  if (strcmp(scenario, "kinds") == 0) every_kind();
  if (strcmp(scenario, "reused") == 0) reused();
  if (strcmp(scenario, "freed") == 0) freed();
  if (strcmp(scenario, "forked") == 0) forked();
  if (strcmp(scenario, "executed") == 0) executed(self);
  if (strcmp(scenario, "closed") == 0) closed_descriptors();
  if (strcmp(scenario, "address space") == 0) limited(RLIMIT_AS, 1u << 30);
  if (strcmp(scenario, "descriptors") == 0) limited(RLIMIT_NOFILE, 3);
  if (strcmp(scenario, "failures") == 0) failures();
  if (strcmp(scenario, "counted") == 0) counted();
  if (strcmp(scenario, "hidden") == 0) hidden();
  if (strcmp(scenario, "resized") == 0) resized();
  if (strcmp(scenario, "any order") == 0) any_order();
  if (strcmp(scenario, "timed") == 0) timed();
  if (strcmp(scenario, "file size") == 0) {
    limit(RLIMIT_FSIZE, 0);
    every_kind();
  }
  return 0;
}
