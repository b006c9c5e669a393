/* Closes all descriptors that it did not open, before it maps its pool. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
  (void)argc;
  closefrom(3);
  const int file = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (ftruncate(file, 4096) != 0) return 2;
  char *pool = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (pool == MAP_FAILED) return 2;
  pool[0] = 1; /* STORE */
  return 0;
}
