/* Copies 256 MiB back and forth without end: a steady load on memory. */
#include <stdlib.h>
#include <string.h>

int main(void) {
  const size_t bytes = (size_t)256 << 20;
  char *a = malloc(bytes), *b = malloc(bytes);
  memset(a, 1, bytes);
  for (;;) {
    memcpy(b, a, bytes);
    memcpy(a, b, bytes);
    __asm__ volatile("" ::"r"(a), "r"(b) : "memory");
  }
}
