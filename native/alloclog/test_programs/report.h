// What a test program reports to its test: a line for each address, "LABEL ADDRESS FUNCTION", and
// then that the test may look. FUNCTION is 0 where no site is expected.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

// Each allocating function has its own 256 bytes of code, by which the test recognizes its sites.
#define ALLOCATES __attribute__((noinline, noipa, aligned(256)))

static inline void report(const char* label, const void* address, const void* function) {
  printf("%s %ju %ju\n", label, (uintmax_t)(uintptr_t)address, (uintmax_t)(uintptr_t)function);
}

/// Waits until the test has looked.
static inline void show(void) {
  printf("show %ju 0\n", (uintmax_t)getpid());
  fflush(stdout);
  char answer = 0;
  if (read(0, &answer, 1) != 1) _exit(3);
}
