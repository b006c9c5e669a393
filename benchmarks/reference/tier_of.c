/* Time of asking which tier or kind a block belongs to, ns a question.
 *
 * Usage: tier_of hmalloc|inline|memkind QUESTIONS
 * Blocks of 1-4096 bytes, 1024 of them, asked about in a random order; the answers are summed and
 * printed, so that no question can be left out. `hmalloc` calls the function, `inline` is the header's.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <memkind.h>
#include <nearfar/hmalloc.h>

enum { BLOCKS = 1024 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint64_t next(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

#define ASK(question)                                                                              \
  for (long i = 0; i < questions; ++i) sum += (long)(question)

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const char* who = argv[1];
  const long questions = atol(argv[2]);
  const int ours = strcmp(who, "memkind") != 0;
  void* blocks[BLOCKS];
  uint64_t state = 1;
  for (int i = 0; i < BLOCKS; ++i) {
    const size_t bytes = 1 + next(&state) % 4096;
    blocks[i] = ours ? hm_malloc(HM_NEAR, bytes) : memkind_malloc(MEMKIND_DEFAULT, bytes);
    if (blocks[i] == NULL) return 1;
  }
  for (int i = BLOCKS - 1; i > 0; --i) {
    const int j = (int)(next(&state) % (uint64_t)(i + 1));
    void* block = blocks[i];
    blocks[i] = blocks[j];
    blocks[j] = block;
  }
  long sum = 0;
  const double start = now();
  if (strcmp(who, "inline") == 0)
    ASK(hm_tier_of(blocks[i % BLOCKS]));
  else if (ours)
    ASK((hm_tier_of)(blocks[i % BLOCKS]));
  else
    ASK((uintptr_t)memkind_detect_kind(blocks[i % BLOCKS]));
  printf("%.4f %ld\n", (now() - start) / (double)questions, sum);
  return 0;
}
