/* Loads, calls and unloads libraries, each of which stores to a mapped file and flushes in assembly;
 * with -DHOST the program that does it, else such a library. With MISSING, its store is not flushed.
 * With -DRELATIVE, the program leaves the folder of a library once it is loaded; with -DAPART, each has a
 * namespace of its own.
 *
 * Usage  reloaded_library POOL LIBRARY... */
#define _GNU_SOURCE
#include <stdint.h>

#ifdef HOST
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 4096) != 0) return 2;
  uint64_t *pool = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (pool == MAP_FAILED) return 2;
  for (int i = 2; i < argc; ++i) {
#ifdef APART
    void *library = dlmopen(LM_ID_NEWLM, argv[i], RTLD_NOW);
#else
    void *library = dlopen(argv[i], RTLD_NOW);
#endif
    if (library == 0) return 3;
#ifdef RELATIVE
    if (chdir("/") != 0) return 4;
#endif
    ((void (*)(uint64_t *))dlsym(library, "fill"))(pool + 8 * i);
    dlclose(library);
  }
  return 0;
}
#else
void fill(uint64_t *pool) {
  pool[0] = 1; /* STORE */
#ifndef MISSING
  __asm__ volatile("clwb %0" : : "m"(*(const char *)pool) : "memory");
#endif
  __asm__ volatile("sfence" : : : "memory");
}
#endif
