/* Pointers that are not of the malloc that is preloaded. Argument: what to do.
 *
 *   libc           blocks of libc's own malloc: small, mapped, of a thread's arena; all is well
 *   libc-full      the same, where no file can be opened
 *   CASE CALL      a pointer of no heap is given to free, realloc or usable: stack, variable,
 *                  mapping, thread, inside (a block of libc), freed (a mapped block of libc)
 *
 * Where it can be, a size that libc would take is forged before the pointer and after the block.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

static void* (*libc_malloc)(size_t);
static void (*libc_free)(void*);

static void* small_blocks(void* of) {
  for (size_t bytes = 1; bytes < 3000; bytes = bytes * 3 / 2 + 1) {
    char* block = libc_malloc(bytes);
    if (malloc_usable_size(block) < bytes) exit(3);
    memset(block, 'x', bytes);
    block = realloc(block, bytes * 2);
    if (block[0] != 'x' || block[bytes - 1] != 'x') exit(4);
    free(block);
    free(libc_malloc(bytes));
  }
  return of;
}

static int take_libcs(void) {
  small_blocks(NULL);
  pthread_t thread;
  if (pthread_create(&thread, NULL, small_blocks, NULL) != 0) return 5;
  pthread_join(thread, NULL);
  char* large = libc_malloc(1000000);
  memset(large, 'l', 1000000);
  large = realloc(large, 3000000);
  if (large[999999] != 'l') return 6;
  free(large);
  free(libc_malloc(500000));
  return 0;
}

/* Words that look like a block of 48 bytes between others. */
static void* forge(size_t* words, size_t flags) {
  words[0] = 0;
  words[1] = 48 | flags;
  words[7] = 48 | flags | 1;
  words[13] = 48 | flags | 1;
  return words + 2;
}

static size_t variable[16] __attribute__((aligned(16)));

static void* of_thread(void* into) {
  size_t words[16] __attribute__((aligned(16)));
  *(void**)into = forge(words, 5);
  void (*give)(void*) = ((void (**)(void*))into)[1];
  give(*(void**)into);
  return NULL;
}

static void give_to_free(void* ptr) { free(ptr); }
static void give_to_realloc(void* ptr) { free(realloc(ptr, 100)); }
static void give_to_usable(void* ptr) { printf("%zu bytes\n", malloc_usable_size(ptr)); }

static void* wrong(const char* name, size_t* on_stack) {
  if (strcmp(name, "stack") == 0) return forge(on_stack, 1);
  if (strcmp(name, "variable") == 0) return forge(variable, 1);
  if (strcmp(name, "mapping") == 0)
    return forge(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1);
  if (strcmp(name, "inside") == 0) return (char*)memset(libc_malloc(1000), 'i', 1000) + 64;
  void* freed = libc_malloc(1000000);
  libc_free(freed);
  return freed;
}

int main(int count, char** arguments) {
  void* libc = dlopen("libc.so.6", RTLD_NOW);
  libc_malloc = (void* (*)(size_t))dlsym(libc, "malloc");
  libc_free = (void (*)(void*))dlsym(libc, "free");
  const struct rlimit no_files = {0, 0};
  if (strcmp(arguments[1], "libc-full") == 0 && setrlimit(RLIMIT_NOFILE, &no_files) != 0) return 7;
  if (count == 2) return take_libcs();
  void (*give)(void*) = strcmp(arguments[2], "free") == 0      ? give_to_free
                        : strcmp(arguments[2], "realloc") == 0 ? give_to_realloc
                                                               : give_to_usable;
  if (strcmp(arguments[1], "thread") == 0) {
    void* given[2] = {NULL, (void*)give};
    pthread_t thread;
    if (pthread_create(&thread, NULL, of_thread, given) != 0) return 5;
    pthread_join(thread, NULL);
    return 0;
  }
  size_t on_stack[16] __attribute__((aligned(16)));
  give(wrong(arguments[1], on_stack));
  return 0;
}
