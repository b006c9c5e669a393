/* A library that allocates when it is loaded, unloaded and used. Its thread-local data is so large that
 * the dynamic loader allocates it with malloc() at the first use in a thread. */
#include <stdlib.h>
#include <string.h>

enum { blocks = 100, area_bytes = 100000 };

static _Thread_local unsigned char area[area_bytes];
static unsigned char* held[blocks];

static size_t size_of(int i) { return (size_t)i * 37 + 1; }

__attribute__((constructor)) static void load(void) {
  for (int i = 0; i < blocks; ++i)
    if ((held[i] = malloc(size_of(i))) != NULL) memset(held[i], i, size_of(i));
}

__attribute__((destructor)) static void unload(void) {
  for (int i = 0; i < blocks; ++i) {
    for (size_t k = 0; held[i] != NULL && k < size_of(i); ++k)
      if (held[i][k] != i) abort();
    free(held[i]);
  }
}

/* Returns a block of `size` bytes of `value`, which outlives the library. */
__attribute__((visibility("default"))) unsigned char* make_block(size_t size, unsigned char value) {
  for (int i = 0; i < area_bytes; ++i)
    if (area[i] != area[0]) abort();
  memset(area, value, sizeof area);
  unsigned char* block = malloc(size);
  if (block != NULL) memset(block, value, size);
  return block;
}
