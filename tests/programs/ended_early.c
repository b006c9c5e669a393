/* Fills an array by a loop that the compiler unrolls, sets a flag, and ends before the last line.
 * argv: the pool; "forget": the array is not flushed; "kill": a signal ends the program between a
 * store and its flush; "abort": the program ends so each time. */
#include <fcntl.h>
#include <libpmem.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORDS = 1024 };

int main(int argc, char** argv) {
  const char* how = argc == 3 ? argv[2] : "";
  const int file = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, WORDS * sizeof(long)) != 0) return 1;
  long* words = mmap(NULL, WORDS * sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (words == MAP_FAILED) return 1;
  if (words[8] != 0)
    for (int i = 0; i < 8; ++i)
      if (words[i] != 7 + i) abort();
  if (words[8] == 0) {
    for (int i = 0; i < 8; ++i)
      words[i] = 7 + i;
    if (strcmp(how, "forget") != 0) pmem_persist(words, 64);
    words[8] = 1;
    pmem_persist(&words[8], sizeof(long));
  }
  words[64] = 1;
  if (strcmp(how, "kill") == 0) raise(SIGTERM);
  pmem_persist(&words[64], sizeof(long));
  if (strcmp(how, "abort") == 0) abort();
  return 0;
}
