/* Stores, flushes and copies set errno only if they fail: a program relies on it between two calls. */
#include <emmintrin.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
  (void)argc;
  const int file = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (ftruncate(file, 4096) != 0) return 2;
  volatile uint64_t *words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  for (int i = 0; i < 2; ++i) {
    errno = 0;
    words[i] = 1;
    if (errno != 0) return 3;
    memcpy((void *)&words[8], argv[0], 5 + (size_t)i);
    if (errno != 0) return 4;
    __atomic_fetch_add(&words[16], 1, __ATOMIC_SEQ_CST);
    if (errno != 0) return 5;
    for (int word = 0; word <= 16; word += 8)
      _mm_clflush((const void *)&words[word]);
    _mm_sfence();
    if (errno != 0) return 6;
  }
  return 0;
}
