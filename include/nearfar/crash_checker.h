/* A checker of crash images as a C function, for `nearfar crash run --checker LIBRARY.so:FUNCTION`.
 *
 * Purpose  a checker without a process for each image: some ten thousand checks per
 *          second. The function runs in a helper process; if it crashes or takes too long,
 *          that is reported, and the next image is checked in a new process.
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

/* The content after the power cut, and the progress of the program before it. */
struct nearfar_crash_image {
  const char* path;           /* a file that holds the image; it may be opened and mapped */
  void* memory;               /* the same bytes, writable */
  size_t bytes;               /* of the pool */
  unsigned long acknowledged; /* completed operations (nearfar_crash_end) */
  int in_flight;              /* 1: one more operation had started */
  int finished;               /* 1: the program had finished */
  int dead_host;              /* --hosts 2: the host that died alone; -1: power failed for both */
  size_t operation_count;     /* --interleave: so many operations of created threads had ended, */
  const unsigned long* operations; /* with these numbers (nearfar_crash_end), in this order */
};

enum {
  NEARFAR_CRASH_GOOD = 0,
  NEARFAR_CRASH_BROKEN = 1,  /* or any other number: an invariant does not hold */
  NEARFAR_CRASH_REFUSED = 2, /* the image does not open */
};

/* Returns one of these. `why` has space for `bytes` characters: the reason of a failure. Stores
 * into `memory`, or into the file by a mapping, are discarded before the next image. The function
 * must not write to the file by system calls. */
typedef int nearfar_crash_checker(const struct nearfar_crash_image* image, char* why, size_t bytes);

#endif
