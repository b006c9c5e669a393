/* Stores the state of the processor, and zeros over zeros, to a mapped file, and flushes all of it.
 *
 * Usage  saved_state POOL */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void persist(char* at, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 64)
    __asm__ volatile("clwb (%0)" : : "r"(at + i) : "memory");
  __asm__ volatile("sfence" : : : "memory");
}

int main(int argc, char **argv) {
  int fd = open(argv[argc - 1], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 16384) != 0) return 2;
  char* pool = mmap(0, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (pool == MAP_FAILED) return 2;
  __asm__ volatile("fxsave (%0)" : : "r"(pool + 512) : "memory");
  persist(pool + 512, 512);
  __asm__ volatile("fxsave (%0)" : : "r"(pool + 8192 - 256) : "memory"); /* two pages */
  persist(pool + 8192 - 256, 512);
  explicit_bzero(pool + 12288, 8);
  persist(pool + 12288, 8);
  return 0;
}
