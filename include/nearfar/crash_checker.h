/* A checker of crash images as a C function, for `nearfar crash run --checker LIBRARY.so:FUNCTION`.
 *
 * Purpose  what a program does as a checker, without a process for each image: some ten thousand
 *          checks a second. The function runs in a helper process; if it crashes or takes too long,
 *          that is reported, and the next image meets a fresh one.
 * Example  int check(const struct nearfar_crash_image* image, char* why, size_t bytes) {
 *            const struct journal* j = image->memory;
 *            ...
 *            snprintf(why, bytes, "entry %d is torn", i);
 *            return NEARFAR_CRASH_BROKEN;
 *          }
 *          gcc -shared -fPIC check.c -o check.so
 */
#ifndef NEARFAR_CRASH_CHECKER_H
#define NEARFAR_CRASH_CHECKER_H

#include <stddef.h>

/* What the power cut left, and what had happened before it. */
struct nearfar_crash_image {
  const char* path;           /* a file that holds the image; it may be opened and mapped */
  void* memory;               /* the same bytes, which may be changed */
  size_t bytes;               /* of the pool */
  unsigned long acknowledged; /* operations that had ended (nearfar_crash_end) */
  int in_flight;              /* 1: one more had begun */
  int finished;               /* 1: the program had come to its end */
};

enum {
  NEARFAR_CRASH_GOOD = 0,
  NEARFAR_CRASH_BROKEN = 1,  /* or any other number: an invariant does not hold */
  NEARFAR_CRASH_REFUSED = 2, /* the image does not open */
};

/* Returns one of these. `why` has room for `bytes` characters that tell what is wrong. What it stores
 * into `memory`, or into the file by mapping it, is gone before the next image; it must not write
 * the file by system calls. */
typedef int nearfar_crash_checker(const struct nearfar_crash_image* image, char* why, size_t bytes);

#endif
