/* Maps its pool, then leaves too little address space for the recorder to map it as often. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { bytes = 48 << 20 };

static rlim_t address_space(void) {
  unsigned long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%lu", &pages) != 1) return 0;
  fclose(file);
  return (rlim_t)pages * 4096;
}

int main(int count, char **arguments) {
  const int fd = open(arguments[count - 1], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, bytes) != 0) return 1;
  uint64_t *first = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (first == MAP_FAILED) return 1;
  first[0] = 1;
  const rlim_t most = address_space() + bytes + (bytes >> 1);
  const struct rlimit limit = {most, most};
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 1;
  uint64_t *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (all == MAP_FAILED) return 1;
  all[1] = 2;
  return first[0] == 1 && first[1] == 2 ? 0 : 1;
}
