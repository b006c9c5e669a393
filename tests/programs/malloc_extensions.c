/* What glibc and others offer about a heap and beyond malloc(), for a library that is preloaded in its place. Each case prints
 * "ok NAME" or says what was wrong. malloc_stats() writes to standard error. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not in glibc 2.36: defined by the preloaded library alone. */
__attribute__((weak)) size_t malloc_good_size(size_t size);
__attribute__((weak)) int reallocarr(void* block, size_t count, size_t size);
__attribute__((weak)) void cfree(void* block); /* in glibc up to 2.25 */
__attribute__((weak)) void free_sized(void* block, size_t size);
__attribute__((weak)) void free_aligned_sized(void* block, size_t alignment, size_t size);

enum { block_count = 1000, block_bytes = 20000 };

static void expect(const char* name, int holds) { printf("%s %s\n", holds ? "ok" : "FAILED", name); }

static void* volatile blocks[block_count];

/* How many of 1,000 blocks of 96 bytes stay allocated after they were freed with `release`. */
static size_t left_after(void (*release)(void*)) {
  const size_t before = mallinfo2().uordblks;
  for (int i = 0; i < block_count; ++i)
    blocks[i] = aligned_alloc(32, 96);
  for (int i = 0; i < block_count; ++i)
    release(blocks[i]);
  const size_t after = mallinfo2().uordblks;
  return after > before ? (after - before) / 96 : 0;
}
static void release_sized(void* block) { free_sized(block, 96); }
static void release_aligned_sized(void* block) { free_aligned_sized(block, 32, 96); }

static volatile int stop;

static void* allocate_large_blocks(void* unused) {
  while (!stop) {
    void* volatile block = malloc(64 << 20);
    free(block);
  }
  return unused;
}

/* Small blocks in use, as mallinfo2() reports them while another thread allocates large ones. */
static int small_blocks_are_counted(size_t bytes) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, allocate_large_blocks, NULL) != 0) return 0;
  int counted = 1;
  for (int i = 0; i < 20000; ++i)
    counted = counted && mallinfo2().uordblks >= bytes;
  stop = 1;
  pthread_join(thread, NULL);
  return counted;
}

int main(void) {
  void* volatile first = malloc(100);
  const struct mallinfo2 before = mallinfo2();
  for (int i = 0; i < block_count; ++i)
    blocks[i] = memset(malloc(block_bytes), 1, block_bytes);
  void* volatile large = malloc(64 << 20);
  const struct mallinfo2 during = mallinfo2();
  expect("mallinfo2 in use", during.uordblks - before.uordblks >= (size_t)block_count * block_bytes);
  expect("mallinfo2 arena", during.arena >= during.uordblks && during.arena > before.arena);
  expect("mallinfo2 mapped", during.hblks == before.hblks + 1 &&
                                 during.hblkhd - before.hblkhd >= (size_t)64 << 20);
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  expect("mallinfo", (size_t)mallinfo().uordblks - during.uordblks < 100000);
  malloc_stats();
  char* text = NULL;
  size_t length = 0;
  FILE* file = open_memstream(&text, &length);
  expect("malloc_info options", malloc_info(1, file) == EINVAL);
  char mapped[100];
  sprintf(mapped, "<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>\n", during.hblks, during.hblkhd);
  expect("malloc_info", malloc_info(0, file) == 0 && fclose(file) == 0 &&
                            strncmp(text, "<malloc version=\"1\">\n<heap nr=\"0\">", 34) == 0 &&
                            strcmp(text + length - 10, "</malloc>\n") == 0 && strstr(text, mapped) != NULL);
  expect("mallinfo2 next to a thread", small_blocks_are_counted((size_t)block_count * block_bytes));
  for (int i = 0; i < block_count; ++i) free(blocks[i]);
  free(large);
  expect("mallinfo2 after free", mallinfo2().uordblks - before.uordblks < 100000 &&
                                     mallinfo2().hblks == before.hblks);
  const struct mallinfo2 freed = mallinfo2();
  expect("mallinfo2 free", freed.ordblks == 1 && freed.fordblks == freed.arena - freed.uordblks);
  expect("mallinfo2 returnable", freed.keepcost >= (size_t)64 << 20);
  expect("malloc_trim", malloc_trim(0) == 1);
  expect("mallinfo2 after trim", mallinfo2().keepcost == 0);
  expect("malloc_trim of nothing", malloc_trim(0) == 0);
  const size_t alignments[] = {3, 48, (size_t)1 << 31, (size_t)1 << 33};
  for (int i = 0; i < 4; ++i) {
    void* volatile block = aligned_alloc(alignments[i], 100);
    size_t power = 1;
    while (power < alignments[i]) power *= 2;
    expect("aligned_alloc", block != NULL && (uintptr_t)block % power == 0);
    free(block);
  }
  expect("malloc_good_size", malloc_good_size(100) == malloc_usable_size(first));
  void* array = NULL;
  errno = 0;
  expect("reallocarr allocates", reallocarr(&array, 100, 50) == 0 && malloc_usable_size(array) >= 5000);
  void* const before_overflow = array;
  expect("reallocarr overflows", reallocarr(&array, SIZE_MAX / 2, 3) == EOVERFLOW &&
                                     array == before_overflow && errno == 0);
  expect("reallocarr fails", reallocarr(&array, SIZE_MAX / 4, 1) == ENOMEM &&
                                 array == before_overflow && errno == 0);
  expect("reallocarr frees", reallocarr(&array, 0, 50) == 0 && array == NULL);
  expect("cfree", cfree == NULL || left_after(cfree) == 0);
  expect("free_sized", left_after(release_sized) == 0);
  expect("free_aligned_sized", left_after(release_aligned_sized) == 0);
  free_sized(NULL, 1);
  free(first);
  return 0;
}
