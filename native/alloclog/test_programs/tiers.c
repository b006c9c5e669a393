// A program whose blocks are in tiers of libhmalloc. Usage: tiers SCENARIO
#include <nearfar/hmalloc.h>

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "alloclog/test_programs/report.h"

ALLOCATES void* by_malloc(hm_tier tier, size_t bytes) {
  char* block = hm_malloc(tier, bytes);
  if (block != NULL) block[0] = 1;
  return block;
}
ALLOCATES void* by_calloc(hm_tier tier, size_t bytes) {
  char* block = hm_calloc(tier, 1, bytes);
  block[0] = 1;
  return block;
}
ALLOCATES void* by_realloc(hm_tier tier, void* old, size_t bytes) {
  char* block = hm_realloc(tier, old, bytes);
  if (block != NULL) block[0] = 1;
  return block;
}
ALLOCATES void* by_memalign(hm_tier tier, size_t bytes) {
  char* block = hm_memalign(tier, 4096, bytes);
  block[0] = 1;
  return block;
}
ALLOCATES void* by_move(hm_tier tier, void* old) {
  char* block = hm_move(old, tier);
  block[0] = 1;
  return block;
}
ALLOCATES void* by_heap(hm_heap* heap, size_t bytes) {
  char* block = hm_heap_malloc(heap, bytes);
  block[0] = 1;
  return block;
}

static void report_ends(const char* label, char* block, size_t bytes, const void* function) {
  report(label, block, function);
  report(label, block + bytes - 1, function);
}

static void every_kind(hm_tier far) {
  const size_t sizes[] = {100, 5000, 33 << 10, 1 << 20, 5 << 20};
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; ++i)
    for (hm_tier tier = HM_NEAR; tier <= far; tier += far) {
      const size_t bytes = sizes[i];
      report_ends("malloc", by_malloc(tier, bytes), bytes, by_malloc);
      report_ends("calloc", by_calloc(tier, bytes), bytes, by_calloc);
      report_ends("memalign", by_memalign(tier, bytes), bytes, by_memalign);
      report_ends("grown", by_realloc(tier, by_malloc(tier, bytes / 2), bytes), bytes, by_realloc);
      report_ends("moved", by_move(far - tier, by_malloc(tier, bytes)), bytes, by_move);
      hm_heap* heap = hm_heap_create(tier, 0);
      report_ends("heap", by_heap(heap, bytes), bytes, by_heap);
    }
  char* kept = by_malloc(HM_NEAR, 2 << 20);
  if (by_realloc(HM_NEAR, kept, (size_t)1 << 60) != NULL) abort();
  report_ends("kept", kept, 2 << 20, by_realloc); // which failed, and left the block
  show();
}

/// All blocks are freed, in one way or another.
static void freed(hm_tier far) {
  hm_heap* heap = hm_heap_create(far, 0);
  for (int i = 0; i < 100; ++i) {
    hm_free(by_malloc(far, 1 << 20));
    by_heap(heap, 100 << 10);
  }
  report("live", by_heap(heap, 3 << 20), by_heap);
  show();
  hm_heap_destroy(heap);
  show();
}

/// A child that frees blocks of its parent.
static void forked(hm_tier far) {
  char* block = by_malloc(HM_NEAR, 3 << 20);
  char* in_far = by_malloc(far, 3 << 20);
  if (fork() == 0) {
    hm_free(block);
    hm_free(in_far);
    report("freed", block + (1 << 20), NULL);
    report("freed", in_far + (1 << 20), NULL);
    show();
    _exit(0);
  }
  wait(NULL);
  report("parent's", block + (1 << 20), by_malloc);
  report("parent's", in_far + (1 << 20), by_malloc);
  show();
}

int main(int argc, char** argv) {
  const hm_tier far = hm_tier_create("far", "shm:,capacity=256MiB");
  if (argc != 2 || far != HM_FAR) return 2;
  if (strcmp(argv[1], "kinds") == 0) every_kind(far);
  if (strcmp(argv[1], "freed") == 0) freed(far);
  if (strcmp(argv[1], "forked") == 0) forked(far);
  return 0;
}
