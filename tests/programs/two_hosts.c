// Litmus programs of two hosts on one pool: two_hosts NAME POOL. One thread takes turns for both.
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile uint64_t *x, *y, *z; // words 0 of three lines

static void on(int host) { nearfar_crash_host(host); }
static void write_back(volatile uint64_t* word) {
  _mm_clwb((void*)word);
  _mm_sfence();
}

static void alone(void) { *x = 1; }
static void independent(void) {
  on(0), *x = 1;
  on(1), *y = 1;
}
static void flushed(void) {
  on(0), *x = 1, write_back(x);
  on(1), *y = 1;
}
static void foreign_flush(void) {
  on(0), *x = 1;
  on(1), write_back(x), *y = 1;
}
static void load(void) {
  on(0), *x = 1;
  on(1), *y = *x;
}
static void overwrite(void) {
  on(0), *x = 1;
  on(1), *x = 2;
}
static void one_line(void) {
  on(0), x[0] = 1, x[1] = 2;
  on(1), *y = 1;
}
static void false_sharing(void) {
  on(0), x[0] = 1;
  on(1), x[1] = 2;
  on(0), *y = 1;
}
static void message(void) {
  on(0), *x = 1, write_back(x), *y = 1;
  on(1), *z = *y;
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } programs[] = {{"alone", alone},       {"independent", independent},
                  {"flushed", flushed},   {"foreign_flush", foreign_flush},
                  {"load", load},         {"overwrite", overwrite},
                  {"one_line", one_line}, {"false_sharing", false_sharing},
                  {"message", message}};
  if (argc < 3) return 2;
  int pool = open(argv[2], O_RDWR | O_CREAT, 0600);
  if (pool < 0 || ftruncate(pool, 4096) != 0) return 1;
  x = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, pool, 0);
  if (x == MAP_FAILED) return 1;
  y = x + 8, z = x + 16;
  for (size_t i = 0; i < sizeof programs / sizeof *programs; ++i)
    if (strcmp(argv[1], programs[i].name) == 0) programs[i].run();
  return 0;
}
