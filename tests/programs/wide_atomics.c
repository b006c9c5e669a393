/* Operations on 16 bytes by four threads, and each kind once. Returns 0 if all results are right. */
#include <pthread.h>
#include <stddef.h>

typedef unsigned __int128 wide;
static wide pair, sum;

static wide of(unsigned long high, unsigned long low) { return (wide)high << 64 | low; }

static void* work(void* argument) {
  for (int i = 0; i < 20000; ++i) {
    wide seen = __atomic_load_n(&pair, __ATOMIC_ACQUIRE);
    while (!__atomic_compare_exchange_n(&pair, &seen, seen + of(1, 2), 1, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
      ;
    __atomic_fetch_add(&sum, of(1, 3), __ATOMIC_RELAXED);
  }
  return argument;
}

int main(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i)
    pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < 4; ++i)
    pthread_join(threads[i], NULL);
  int wrong = pair != of(80000, 160000) || sum != of(80000, 240000);
  wrong |= __atomic_exchange_n(&pair, of(5, 6), __ATOMIC_SEQ_CST) != of(80000, 160000);
  wrong |= __atomic_fetch_sub(&pair, 1, __ATOMIC_SEQ_CST) != of(5, 6);
  wrong |= __atomic_fetch_or(&pair, 8, __ATOMIC_SEQ_CST) != of(5, 5);
  wrong |= __atomic_fetch_and(&pair, 12, __ATOMIC_SEQ_CST) != of(5, 13);
  wrong |= __atomic_fetch_xor(&pair, 3, __ATOMIC_SEQ_CST) != 12;
  wrong |= __atomic_fetch_nand(&pair, 1, __ATOMIC_SEQ_CST) != 15;
  wrong |= !__sync_bool_compare_and_swap(&pair, ~(wide)1, 7);
  __atomic_store_n(&pair, of(9, 9), __ATOMIC_RELEASE);
  unsigned char byte = 3;
  wrong |= __atomic_fetch_nand(&byte, 1, __ATOMIC_SEQ_CST) != 3 || byte != 254;
  return wrong || pair != of(9, 9);
}
