// Stores a word and persists it, after calls that write to the same page of the pool and that no
// recorder sees. Arguments: POOL WAY.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
  const int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (argc < 3 || fd < 0 || ftruncate(fd, 4096) != 0) return 2;
  volatile uint64_t *pool = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (pool[8] == 1) return 0;
  if (strcmp(argv[2], "dprintf") == 0) dprintf(fd, "unseen");
  if (strcmp(argv[2], "fwrite") == 0) {
    FILE *const file = fdopen(dup(fd), "r+");
    if (fwrite("unseen", 6, 1, file) != 1 || fclose(file) != 0) return 3;
  }
  pool[8] = 1;
  __asm__ volatile("clwb (%0)\n\tsfence" : : "r"(pool + 8) : "memory");
  return 0;
}
