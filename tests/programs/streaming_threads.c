/* Threads store to the same pages of a mapped file: flushed stores, and non-temporal stores, which need
 * no flush. Started again, it aborts if a value was durable before what it counts.
 *
 * Usage  streaming_threads POOL */
#include <emmintrin.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { threads = 6, slots = 60, rounds = 4 };
struct slot {
  _Alignas(64) uint64_t value;
  uint64_t sum;
  long long streamed[2];
  _Alignas(64) long long before;
  _Alignas(64) uint64_t after;
};
static struct slot *slot;

static void persist(const void *at) {
  __asm__ volatile("clwb (%0)\n\tsfence" : : "r"(at) : "memory");
}

static void *fill(void *first) {
  for (int round = 1; round <= rounds; ++round)
    for (long i = (long)first; i < slots; i += threads) {
      slot[i].value = (uint64_t)round;
      persist(&slot[i].value);
      __atomic_fetch_add(&slot[0].sum, 1, __ATOMIC_SEQ_CST);
      persist(&slot[0].sum);
      _mm_stream_si64(slot[i].streamed, round);
      _mm_stream_si64(&slot[i].before, round);
      _mm_sfence();
      slot[i].after = (uint64_t)round;
      persist(&slot[i].after);
    }
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  const size_t bytes = slots * sizeof(struct slot);
  int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) return 2;
  slot = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (slot == MAP_FAILED) return 2;
  for (int i = 0; i < slots; ++i)
    if (slot[i].after > (uint64_t)slot[i].before) abort();
  pthread_t thread[threads];
  for (long i = 0; i < threads; ++i)
    pthread_create(&thread[i], 0, fill, (void *)i);
  for (int i = 0; i < threads; ++i)
    pthread_join(thread[i], 0);
  return 0;
}
