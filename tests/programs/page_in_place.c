/* Overwrites a page by a copy, in place: a power failure leaves a part. The file ends within a line. */
#include <emmintrin.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct page {
  uint64_t version;
  unsigned char bytes[4088];
};
struct pages {
  struct page page[16];
  uint64_t valid;
};

static void persist(const void *at, size_t bytes) {
  const char *end = (const char *)at + bytes;
  for (const char *line = (const char *)((uintptr_t)at & ~(uintptr_t)63); line < end; line += 64)
    _mm_clflush(line);
  _mm_sfence();
}
static void fill(struct page *page, uint64_t version) {
  page->version = version;
  memset(page->bytes, (int)version, sizeof page->bytes);
}
static int is_whole(const struct page *page) {
  for (size_t i = 0; i < sizeof page->bytes; ++i)
    if (page->bytes[i] != page->version) return 0;
  return 1;
}

int main(int argc, char **argv) {
  (void)argc;
  const int file = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (lseek(file, 0, SEEK_END) == 0 && ftruncate(file, sizeof(struct pages)) != 0) return 2;
  void *mapped = mmap(NULL, sizeof(struct pages), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) return 2;
  struct pages *pages = mapped;
  if (pages->valid != 0) {
    for (int i = 0; i < 16; ++i)
      if (!is_whole(&pages->page[i])) return 1;
    return 0;
  }
  struct page made;
  fill(&made, 1);
  for (int i = 0; i < 16; ++i) {
    memcpy(&pages->page[i], &made, sizeof made);
    persist(&pages->page[i], sizeof made);
  }
  pages->valid = 1;
  persist(&pages->valid, sizeof pages->valid);
  fill(&made, 2);
  memcpy(&pages->page[3], &made, sizeof made); /* TORN */
  persist(&pages->page[3], sizeof made);
  return 0;
}
