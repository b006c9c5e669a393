/* Reads into its pool by calls in which the kernel stores. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

int main(int argc, char **argv) {
  (void)argc;
  const int file = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (ftruncate(file, 1 << 20) != 0) return 2;
  char *pool = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), side[64];
  FILE *self = fopen(argv[0], "r");
  if (fread(pool, 1, 8192, self) != 8192 || memcmp(pool, "\177ELF", 4) != 0) return 3; /* READ */
  if (fread(pool + 9000, 16, 2, self) != 2) return 4; /* READ */
  struct iovec parts[3] = {{pool + 16384, 100}, {side, 64}, {pool + 20000, 300}};
  if (readv(fileno(self), parts, 3) < 0) return 5;
  if (preadv(fileno(self), parts, 3, 0) != 464 || /* READ */ memcmp(pool + 16384, pool, 100) != 0 ||
      memcmp(side, pool + 100, 64) != 0 || memcmp(pool + 20000, pool + 164, 300) != 0)
    return 6;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 || write(ends[0], "hello", 5) != 5) return 7;
  if (recv(ends[1], pool + 24000, 5, 0) != 5 || memcmp(pool + 24000, "hello", 5) != 0) return 8; /* READ */
  if (getrandom(pool + 30000, 16, 0) != 16 || getentropy(pool + 31000, 16) != 0) return 9; /* READ */
  return 0;
}
