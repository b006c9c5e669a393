/* Maps its pool, the file argv[1], by a system call of its own, and stores to it. With argv[2] "late", it
 * maps a part of it as usual before that; with "empty", as usual, but while the file is empty. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BYTES = 8192 };

static void* map(int file) {
  void* at = NULL;
  register long flags __asm__("r10") = MAP_SHARED;
  register long fd __asm__("r8") = file;
  register long offset __asm__("r9") = 0;
  __asm__ volatile("syscall"
                   : "=a"(at)
                   : "a"(SYS_mmap), "D"(0), "S"(BYTES), "d"(PROT_READ | PROT_WRITE), "r"(flags),
                     "r"(fd), "r"(offset)
                   : "rcx", "r11", "memory");
  return at;
}

int main(int argc, char** argv) {
  const int file = argc > 1 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
  const char* way = argc > 2 ? argv[2] : "";
  const int protection = PROT_READ | PROT_WRITE;
  volatile char* pool = NULL;
  if (strcmp(way, "empty") == 0) pool = mmap(NULL, BYTES, protection, MAP_SHARED, file, 0);
  if (file < 0 || ftruncate(file, BYTES) != 0) return 1;
  if (strcmp(way, "late") == 0) {
    volatile char* usual = mmap(NULL, 4096, protection, MAP_SHARED, file, 0);
    usual[0] = 1;
  }
  if (pool == NULL) pool = map(file);
  pool[4096] = 1;
  return 0;
}
