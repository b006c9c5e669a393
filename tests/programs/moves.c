/* Overlapping moves inside a pool: by every distance from 1 to 64 words, up and down, with each
 * function that moves memory. Each move has a block of its own, so that the pool keeps all results.
 */
#include <fcntl.h>
#include <libpmem.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { words = 192, moved = 96, functions = 6, blocks = 64 * 2 * functions };

void *__memmove_chk(void *, const void *, size_t, size_t);

static void move(int function, void *to, const void *from, size_t bytes) {
  switch (function) {
  case 0: memmove(to, from, bytes); break;
  case 1: __memmove_chk(to, from, bytes, bytes); break;
  case 2: pmem_memmove(to, from, bytes, 0); break;
  case 3: pmem_memmove(to, from, bytes, PMEM_F_MEM_NOFLUSH); break;
  case 4: pmem_memmove_persist(to, from, bytes); break;
  case 5: pmem_memmove_nodrain(to, from, bytes); break;
  }
}

int main(int count, char **arguments) {
  const size_t bytes = (size_t)blocks * words * 8;
  const int fd = open(arguments[count - 1], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, bytes) != 0) return 1;
  uint64_t *pool = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (pool == MAP_FAILED) return 1;
  uint64_t source[words];
  for (uint64_t i = 0; i < words; ++i)
    source[i] = i + 1;
  uint64_t *block = pool;
  for (int function = 0; function < functions; ++function)
    for (int distance = 1; distance <= 64; ++distance)
      for (int up = 0; up < 2; ++up, block += words) {
        memcpy(block, source, sizeof source);
        uint64_t *low = block + 3, *high = low + distance;
        move(function, up ? high : low, up ? low : high, moved * 8);
      }
  return 0;
}
