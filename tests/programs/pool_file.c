// Stores a word by another way than through its first mapping, persists it or leaves it, and stores
// that it is there. Arguments: POOL WAY [persist]. On an image that says so wrongly, it ends with 5.
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
enum { size = 8192 };

static void persist(const volatile uint64_t *at) {
  __asm__ volatile("clwb (%0)\n\tsfence" : : "r"(at) : "memory");
}

static volatile uint64_t *map(int fd, int protection) {
  return mmap(NULL, size, protection, MAP_SHARED, fd, 0);
}

static long send(int fd, const uint64_t *word) {
  const int from = memfd_create("word", 0);
  off_t at = 0;
  return write(from, word, 8) == 8 ? sendfile(fd, from, &at, 8) : -1;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  const char *const way = argv[2];
  const int persists = argc > 3;
  const int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, size) != 0) return 2;
  volatile uint64_t *pool = map(fd, PROT_READ | PROT_WRITE);
  if (pool[8] == 1) return pool[0] == 1 ? 0 : 5;
  const uint64_t one = 1;
  const struct iovec part = {(void *)&one, 8};
  long written = 8;
  if (strcmp(way, "child") == 0) {
    pool[0] = 1;
    if (persists) persist(pool);
    return 0;
  }
  if (strcmp(way, "spawn") == 0) {
    pid_t child;
    char *const words[] = {argv[0], argv[1], "child", persists ? "persist" : NULL, NULL};
    if (posix_spawn(&child, argv[0], NULL, NULL, words, environ) != 0) return 2;
    waitpid(child, NULL, 0);
  } else if (strcmp(way, "pwrite") == 0) {
    written = pwrite(fd, &one, 8, 0); // STORED
  } else if (strcmp(way, "write") == 0) {
    written = write(fd, &one, 8); // STORED
  } else if (strcmp(way, "pwritev") == 0) {
    written = pwritev(fd, &part, 1, 0); // STORED
  } else if (strcmp(way, "sendfile") == 0) {
    written = send(fd, &one);
  } else if (strcmp(way, "read-only") == 0) {
    const int read_only = open(argv[1], O_RDONLY);
    const volatile uint64_t *const second = map(read_only, PROT_READ);
    pool[0] = 1; // STORED
    if (persists) persist(second);
  } else if (strcmp(way, "mprotect") == 0) {
    if (mprotect((void *)pool, size, PROT_READ) != 0) return 2;
    if (mprotect((void *)pool, size, PROT_READ | PROT_WRITE) != 0) return 2;
    pool[0] = 1; // STORED
    if (persists) persist(pool);
  } else if (strcmp(way, "tail") == 0) {
    // Memory that is not of the pool, over the second page of its mapping.
    volatile uint64_t *const other = mmap((char *)pool + 4096, 4096, PROT_READ | PROT_WRITE,
                                          MAP_FIXED | MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    other[0] = 1;
    pool[0] = 1; // STORED
  } else if (strcmp(way, "head") == 0) {
    volatile uint64_t *const second = map(fd, PROT_READ | PROT_WRITE);
    munmap((void *)second, 4096);
    second[512] = 1;
    persist(second + 512);
    pool[0] = 1; // STORED
  } else if (strcmp(way, "fallocate") == 0) {
    pool[0] = 2;
    persist(pool);
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 8) != 0) return 3; // STORED
    if (persists) fsync(fd);
    return 0;
  } else {
    pool[0] = 1; // STORED
    munmap((void *)pool, size);
  }
  if (written != 8) return 3;
  if (persists) strcmp(way, "syncfs") == 0 ? syncfs(fd) : fsync(fd);
  pool = map(fd, PROT_READ | PROT_WRITE);
  pool[8] = 1;
  persist(pool + 8);
  return 0;
}
