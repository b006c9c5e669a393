/* Stores and flushes in helpers that are not inlined: calls are right or wrong. */
#include <emmintrin.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

struct words {
  uint64_t a, line_of_b[7], b, line_of_c[7], c, line_of_valid[7], valid;
};

__attribute__((noinline)) static void set(uint64_t *at, uint64_t value) {
  *at = value; /* STORE */
  __asm__ volatile("");
}
__attribute__((noinline)) static void set_word(uint64_t *at, uint64_t value) {
  set(at, value);
  __asm__ volatile("");
}
__attribute__((noinline)) static void persist(const void *at) {
  _mm_clflush(at); /* FLUSH */
  _mm_sfence();
}

int main(int argc, char **argv) {
  (void)argc;
  const int file = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (lseek(file, 0, SEEK_END) == 0 && ftruncate(file, sizeof(struct words)) != 0) return 2;
  void *mapped = mmap(NULL, sizeof(struct words), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) return 2;
  struct words *words = mapped;
  if (words->valid != 0) return words->a != 1 || words->b != 2 || words->c != 3;
  set_word(&words->a, 1);
  persist(&words->a);
  set_word(&words->b, 2); /* WRONG */
  set_word(&words->c, 3);
  persist(&words->c);
  persist(&words->c); /* NEEDLESS */
  set_word(&words->valid, 1);
  persist(&words->valid);
  return 0;
}
