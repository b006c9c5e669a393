/* An index in near memory with records in far memory.
 *
 * Build   cc near_far.c $(pkg-config --cflags --libs hmalloc) -o near_far
 * Run     ./near_far                             far memory is a CPU-less node, or a file in /tmp
 *         NEARFAR_HMALLOC_FAR=numa:1 ./near_far  far memory is node 1
 *
 * A look-up accesses only near memory; far memory is accessed when the record is read.
 */
#include <nearfar/hmalloc.h>

#include <stdio.h>
#include <string.h>

enum { RECORDS = 4096, RECORD_BYTES = 1000 };

struct entry {
  unsigned key;
  char* record; /* in far memory */
};

static int fail(const char* what) {
  fprintf(stderr, "near_far: %s: %s\n", what, hm_error());
  return 1;
}

/* Fills the index with ascending keys, for binary search. */
static int fill(struct entry* index) {
  for (unsigned i = 0; i < RECORDS; ++i) {
    index[i].key = 3 * i;
    index[i].record = hmalloc(RECORD_BYTES, HM_FAR);
    if (index[i].record == NULL) return fail("a record");
    snprintf(index[i].record, RECORD_BYTES, "record of key %u", 3 * i);
  }
  return 0;
}

static const char* find(const struct entry* index, unsigned key) {
  size_t low = 0, high = RECORDS;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (index[middle].key == key) return index[middle].record;
    if (index[middle].key < key)
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}

static const char* side(const void* ptr) {
  return hm_tier_of(ptr) == HM_FAR ? "far" : hm_tier_of(ptr) == HM_NEAR ? "near" : "elsewhere";
}

int main(void) {
  const int configured = hm_tier_find("far") == HM_FAR; /* by NEARFAR_HMALLOC_FAR or a CPU-less node */
  if (!configured && hm_tier_create("far", "file:/tmp,capacity=64MiB") != HM_FAR)
    return fail("far memory");
  struct entry* index = hm_calloc(HM_NEAR, RECORDS, sizeof *index);
  if (index == NULL) return fail("the index");
  if (fill(index) != 0) return 1;

  const char* record = find(index, 3 * 1000);
  if (record == NULL || strcmp(record, "record of key 3000") != 0) return 1;
  printf("the index is %s, its records are %s\n", side(index), side(record));

  struct hm_tier_stats far;
  if (hm_stats(HM_FAR, &far) != 0) return fail("the accounts");
  printf("far memory holds %llu blocks\n", (unsigned long long)(far.allocations - far.frees));

  /* Move a hot record to near memory: the pointer changes, the contents do not. */
  char* hot = hm_move(index[0].record, HM_NEAR);
  if (hot == NULL) return fail("moving a record");
  index[0].record = hot;
  printf("the first record is %s now: %s\n", side(hot), hot);

  for (unsigned i = 0; i < RECORDS; ++i)
    hm_free(index[i].record);
  hm_free(index);
  return 0;
}
