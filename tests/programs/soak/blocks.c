/* Blocks whose every byte is known, allocated in all ways of malloc's interface. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "soak.h"

/* C23; a libc may have none. */
extern void free_sized(void* ptr, size_t size) __attribute__((weak));

static uint64_t word_at(uint64_t seed, size_t index) {
  const uint64_t x = (seed + index) * 0x9E3779B97F4A7C15u;
  return x ^ x >> 29;
}

static unsigned char byte_at(uint64_t seed, size_t at) {
  return (unsigned char)(word_at(seed, at / 8) >> at % 8 * 8);
}

static void fill(struct piece* piece, size_t from) {
  size_t at = from;
  for (; at < piece->size && at % 8 != 0; ++at)
    piece->at[at] = byte_at(piece->seed, at);
  for (; at + 8 <= piece->size; at += 8) {
    const uint64_t word = word_at(piece->seed, at / 8);
    memcpy(piece->at + at, &word, 8);
  }
  for (; at < piece->size; ++at)
    piece->at[at] = byte_at(piece->seed, at);
}

static void check_bytes(const struct piece* piece, size_t size) {
  size_t at = 0;
  for (; at + 8 <= size; at += 8) {
    uint64_t word;
    memcpy(&word, piece->at + at, 8);
    if (word != word_at(piece->seed, at / 8)) break;
  }
  for (; at < size; ++at)
    if (piece->at[at] != byte_at(piece->seed, at))
      fail("byte %zu of a block of %zu bytes at %p is %#x, not %#x", at, piece->size,
           (void*)piece->at, piece->at[at], byte_at(piece->seed, at));
  atomic_fetch_add_explicit(&shared->counts.checked, 1, memory_order_relaxed);
}

static unsigned char* zeroed(size_t size) {
  unsigned char* block = calloc(size > 8 ? (size + 7) / 8 : size, size > 8 ? 8 : 1);
  for (size_t i = 0; block != NULL && i < size; ++i)
    if (block[i] != 0) fail("byte %zu of calloc's block of %zu bytes is %#x", i, size, block[i]);
  return block;
}

static unsigned char* aligned(struct random* random, size_t size) {
  const size_t alignment = (size_t)16 << random_below(random, 13);
  void* block = NULL;
  if (once_in(random, 2))
    block = memalign(alignment, size);
  else if ((errno = posix_memalign(&block, alignment, size)) != 0)
    block = NULL;
  if ((uintptr_t)block % alignment != 0) fail("%p is not aligned to %zu", block, alignment);
  return block;
}

bool take_piece(struct random* random, size_t size, struct piece* piece) {
  const unsigned way = (unsigned)random_below(random, 8);
  errno = 0;
  unsigned char* block = way == 0 ? zeroed(size) : way == 1 ? aligned(random, size) : malloc(size);
  if (block == NULL && errno != ENOMEM) fail("no block of %zu bytes, but errno %d", size, errno);
  *piece = (struct piece){block, size, next_random(random)};
  if (block == NULL) return false;
  const size_t usable = malloc_usable_size(block);
  if (usable < size) fail("%zu of %zu bytes are usable", usable, size);
  if (way == 2) piece->size = usable;
  fill(piece, 0);
  return true;
}

bool resize_piece(struct random* random, size_t size, struct piece* piece) {
  const size_t kept = size < piece->size ? size : piece->size;
  unsigned char* block =
      once_in(random, 2) ? realloc(piece->at, size) : reallocarray(piece->at, size, 1);
  if (block == NULL) return false;
  piece->at = block;
  check_bytes(piece, kept);
  piece->size = size;
  fill(piece, kept);
  return true;
}

void check_piece(const struct piece* piece) {
  if (piece->at != NULL) check_bytes(piece, piece->size);
}

void return_piece(struct random* random, struct piece* piece) {
  if (piece->at == NULL) return;
  check_bytes(piece, piece->size);
  if (free_sized != NULL && piece->size <= 256 && once_in(random, 16)) {
    /* Its size is the requested one, which only realloc() makes known here. */
    if (resize_piece(random, piece->size, piece)) {
      free_sized(piece->at, piece->size);
      piece->at = NULL;
    }
  }
  free(piece->at);
  piece->at = NULL;
}

size_t random_size(struct random* random) {
  const unsigned kind = (unsigned)random_below(random, 1000);
  const size_t limit = kind < 700 ? 256 : kind < 940 ? 4096 : kind < 995 ? 64 << 10 : 2 << 20;
  return 1 + random_below(random, limit);
}
