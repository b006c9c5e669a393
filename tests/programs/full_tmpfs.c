/* Persists the first word of argv[3] pages of a pool, the file argv[1], which has argv[2] pages. In a file
 * system that is full, a store to a page that the file does not have yet raises SIGBUS. */
#include <fcntl.h>
#include <libpmem.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

int main(int argc, char** argv) {
  const int file = argc == 4 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
  if (file < 0) return 1;
  const size_t bytes = (size_t)atoi(argv[2]) * PAGE, used = (size_t)atoi(argv[3]) * PAGE;
  if ( ftruncate(file, (off_t)bytes) != 0) return 1;
  volatile char* pool = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (pool == MAP_FAILED) return 1;
  for (size_t at = 0; at < used; at += PAGE) {
    *(volatile long*)(pool + at) = 1;
    pmem_persist((void*)(pool + at), sizeof(long));
  }
  return 0;
}
