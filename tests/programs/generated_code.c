/* Code that the program writes itself stores to a mapped file: it also flushes with FLUSH; else the program
 * does, but for one store. With UNMAP, the code is gone when the program ends.
 *
 * Usage  generated_code POOL */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef FLUSH
/* mov %rsi, (%rdi); clflushopt (%rdi); sfence; ret */
static const uint8_t code[] = {0x48, 0x89, 0x37, 0x66, 0x0f, 0xae, 0x3f, 0x0f, 0xae, 0xf8, 0xc3};
#else
/* mov %rsi, (%rdi); ret */
static const uint8_t code[] = {0x48, 0x89, 0x37, 0xc3};
#endif

int main(int argc, char **argv) {
  int fd = open(argv[argc - 1], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 4096) != 0) return 2;
  uint64_t *pool = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  void *made =
      mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pool == MAP_FAILED || made == MAP_FAILED) return 3;
  memcpy(made, code, sizeof code);
  void (*store)(uint64_t*, uint64_t) = (void (*)(uint64_t*, uint64_t))made;
  store(pool, 5);
#ifndef FLUSH
  __asm__ volatile("clflush (%0)" : : "r"(pool) : "memory");
#endif
  store(pool + 64, 6);
#ifdef UNMAP
  munmap(made, 4096);
#endif
  return 0;
}
