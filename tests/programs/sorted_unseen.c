/* Sorts its pool by a library function, which no compiler has instrumented, and flushes nothing. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int order(const void *a, const void *b) {
  return *(const int64_t *)a < *(const int64_t *)b ? -1 : 1;
}

int main(int argc, char **argv) {
  (void)argc;
  const int file = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (ftruncate(file, SIZE) != 0) return 2;
  int64_t *words = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  for (int i = 0; i < 64; ++i)
    words[i] = i * 37 % 64;
  msync(words, SIZE, MS_SYNC);
  qsort(words, 64, sizeof *words, order);
  return 0;
}
