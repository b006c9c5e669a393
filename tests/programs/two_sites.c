#define _GNU_SOURCE
/* Allocates at two call sites; prints the tier of each block by the library that is preloaded. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef int (*tier_of)(const void*);
static tier_of tier;

__attribute__((noinline)) void* first(size_t size) {
  void* p = malloc(size);
  __asm__ volatile("" : "+r"(p)); /* no tail call: the return address is in here */
  return p;
}
__attribute__((noinline)) void* second(size_t size) {
  void* p = malloc(size);
  __asm__ volatile("" : "+r"(p));
  return p;
}
__attribute__((noinline)) void* through(size_t size) {
  void* p = first(size);
  __asm__ volatile("" : "+r"(p));
  return p;
}
static void* named(void* size) {
  pthread_setname_np(pthread_self(), "worker-7");
  return first((size_t)size);
}

int main(void) {
  tier = (tier_of)dlsym(RTLD_DEFAULT, "hm_tier_of");
  printf("first-small %d\n", tier(first(100)));
  printf("first-large %d\n", tier(first(100000)));
  printf("second-small %d\n", tier(second(100)));
  printf("second-large %d\n", tier(second(100000)));
  printf("through-small %d\n", tier(through(100)));
  pthread_t thread;
  void* block = NULL;
  pthread_create(&thread, NULL, named, (void*)100);
  pthread_join(thread, &block);
  printf("thread-small %d\n", tier(block));
  int far = 0;
  void* blocks[100];
  for (int i = 0; i < 100; ++i) far += tier(blocks[i] = second(5000)) == 1;
  printf("many-far %d\n", far);
  for (int i = 0; i < 100; ++i) free(blocks[i]);
  far = 0;
  for (int i = 0; i < 100; ++i) far += tier(blocks[i] = second(5000)) == 1;
  printf("many-again-far %d\n", far);
  return 0;
}
