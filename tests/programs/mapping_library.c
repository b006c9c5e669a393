#define _GNU_SOURCE
/* A library that maps memory (compiled with -DLIBRARY), and a program that maps memory itself, loads
 * the library, which is its argument, and prints the kernel's memory policy of what that maps. */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BYTES = 1 << 20, OF_ADDRESS = 2 };

#ifdef LIBRARY
char* map_there(void) {
  void* p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  __asm__ volatile("" : "+r"(p)); /* no tail call: the return address is in here */
  return p;
}
#else
static int policy(const char* at) {
  int mode = -1;
  return syscall(SYS_get_mempolicy, &mode, NULL, 0, at, OF_ADDRESS) == 0 ? mode : -1;
}

int main(int count, char** arguments) {
  char* own = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* library = dlopen(arguments[count - 1], RTLD_NOW);
  if (library == NULL) return 3;
  char* (*map_there)(void) = (char* (*)(void))dlsym(library, "map_there");
  printf("own %d\nlibrary %d\n", policy(own), policy(map_there()));
  return 0;
}
#endif
