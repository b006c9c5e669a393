/* A pool, the file argv[1], with one store that is flushed and one that is not. */
#include <emmintrin.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 8192 };

int main(int argc, char** argv) {
  const int file = argc == 2 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
  if (file < 0 || ftruncate(file, BYTES) != 0) return 1;
  long* words = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (words == MAP_FAILED) return 1;
  *(volatile long*)&words[0] = 1;
  _mm_clflush(&words[0]);
  _mm_sfence();
  *(volatile long*)&words[64] = 2;
  return 0;
}
