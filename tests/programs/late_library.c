/* Stores to a mapped file and flushes in assembly, in a library that is opened after the file was
 * mapped; with -DHOST the program that opens it. With MISSING, one store is not flushed.
 *
 * Usage  late_library LIBRARY POOL */
#include <stdint.h>

#ifdef HOST
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  int fd = open(argv[2], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 4096) != 0) return 2;
  uint64_t *pool = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  void *library = dlopen(argv[1], RTLD_NOW);
  if (pool == MAP_FAILED || library == 0) return 2;
  ((void (*)(uint64_t *))dlsym(library, "fill"))(pool);
  return 0;
}
#else
static void write_back(const void *at) {
  __asm__ volatile("clwb %0\n\tsfence" : : "m"(*(const char *)at) : "memory");
}

void fill(uint64_t *pool) {
  for (uint64_t i = 0; i < 4; ++i) {
    pool[8 * i] = i + 1; /* STORE */
#ifdef MISSING
    if (i == 2) continue;
#endif
    write_back(&pool[8 * i]);
  }
}
#endif
