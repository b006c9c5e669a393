/* Sixteen cases of what programs ask of malloc, for a library that is preloaded in its place. Each
 * prints "ok NAME" or says what was wrong. Argument: a shared library to open, for dlopen. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char* now;
static int failures;
static const char* library;

static void expect(int holds, const char* what) {
  if (holds) return;
  ++failures;
  printf("FAILED %s: %s\n", now, what);
}

static volatile size_t huge = SIZE_MAX; /* volatile: the compiler would warn of the calls below */

static void of_nothing(void) {
  void* a = malloc(0);
  void* b = malloc(0);
  expect(a && b && a != b, "malloc(0) gives two different blocks");
  free(a);
  free(b);
  free(NULL);
  void* c = realloc(NULL, 10);
  expect(c != NULL, "realloc(NULL, n) allocates");
  free(c);
}

static void calloc_overflow(void) {
  errno = 0;
  expect(calloc(huge / 2, 3) == NULL && errno == ENOMEM, "calloc refuses");
  errno = 0;
  expect(reallocarray(NULL, huge / 2, 3) == NULL && errno == ENOMEM, "reallocarray refuses");
  errno = 0;
  expect(malloc(huge - 100) == NULL && errno == ENOMEM, "malloc refuses");
}

static void calloc_zeroes(void) {
  for (size_t size = 8; size < 3000000; size *= 3) {
    char* a = malloc(size);
    memset(a, 0x5a, size);
    free(a);
    char* b = calloc(1, size);
    size_t sum = 0;
    for (size_t i = 0; i < size; ++i) sum += (unsigned char)b[i];
    expect(sum == 0, "all bytes are zero");
    free(b);
  }
}

static void aligned_calls(void) {
  for (size_t alignment = 16; alignment <= 1 << 21; alignment *= 2) {
    void* a = aligned_alloc(alignment, alignment * 3);
    void* b = memalign(alignment, 100);
    void* c = NULL;
    expect(posix_memalign(&c, alignment, 777) == 0, "posix_memalign gives 0");
    expect((uintptr_t)a % alignment == 0 && (uintptr_t)b % alignment == 0 &&
               (uintptr_t)c % alignment == 0 && a && b && c,
           "addresses are aligned");
    free(a);
    free(b);
    free(c);
  }
}

static void page_calls(void) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  void* a = valloc(10);
  void* b = pvalloc(page + 1);
  expect((uintptr_t)a % page == 0 && (uintptr_t)b % page == 0, "pages are aligned");
  expect(malloc_usable_size(b) >= 2 * page, "pvalloc rounds up to pages");
  memset(b, 1, 2 * page);
  free(a);
  free(b);
}

static void bad_alignments(void) {
  void* p = &p;
  errno = 7;
  expect(posix_memalign(&p, 24, 8) == EINVAL && p == &p && errno == 7, "24 is refused, errno kept");
  expect(posix_memalign(&p, 2, 8) == EINVAL, "2 is refused");
  errno = 0;
  expect(aligned_alloc(huge, 96) == NULL && errno == EINVAL, "aligned_alloc refuses SIZE_MAX");
}

static void usable_size(void) {
  expect(malloc_usable_size(NULL) == 0, "nothing at NULL");
  for (size_t size = 1; size < 2000000; size = size * 7 / 4 + 1) {
    char* a = malloc(size);
    size_t usable = malloc_usable_size(a);
    expect(usable >= size, "at least what was asked");
    memset(a, 1, usable);
    free(a);
  }
}

static void realloc_growth(void) {
  char* a = malloc(8);
  memcpy(a, "grow me", 7);
  for (size_t size = 8; size < 40000000; size = size * 3 / 2) {
    a = realloc(a, size);
    expect(a && memcmp(a, "grow me", 7) == 0, "contents are kept");
    a[size - 1] = 1;
  }
  free(a);
}

static void realloc_shrink(void) {
  char* a = malloc(5000000);
  memcpy(a, "shrink", 7);
  for (size_t size = 5000000; size > 8; size = size * 2 / 3) {
    a = realloc(a, size);
    expect(a && memcmp(a, "shrink", 7) == 0, "contents are kept");
  }
  expect(malloc_usable_size(a) < 100, "memory is not kept for ever");
  expect(realloc(a, 0) == NULL, "realloc(p, 0) frees");
}

static void* free_all(void* blocks) {
  void** all = blocks;
  for (int i = 0; i < 1000; ++i) free(all[i]);
  return malloc(100);
}

static void cross_thread_free(void) {
  for (int round = 0; round < 20; ++round) {
    void* blocks[1000];
    for (int i = 0; i < 1000; ++i) blocks[i] = malloc((size_t)(i * 7 % 900) + 1);
    pthread_t thread;
    void* result = NULL;
    pthread_create(&thread, NULL, free_all, blocks);
    pthread_join(thread, &result);
    free(result);
  }
}

static pthread_key_t key;
static int destroyed;
static void destroy(void* value) { /* may run after the allocator's own destructor */
  free(value);
  free(malloc(300));
  ++destroyed;
}
static void* use_key(void* unused) {
  pthread_setspecific(key, malloc(200));
  for (int i = 0; i < 100; ++i) free(malloc((size_t)i * 50));
  return unused;
}

static void threads_exiting(void) {
  pthread_key_create(&key, destroy);
  for (int i = 0; i < 200; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, use_key, NULL);
    pthread_join(thread, NULL);
  }
  expect(destroyed == 200, "every destructor ran");
}

static volatile int stop;
static void* churn(void* unused) {
  while (!stop) {
    void* blocks[50];
    for (int i = 0; i < 50; ++i) blocks[i] = malloc((size_t)(i * 97 % 5000));
    for (int i = 0; i < 50; ++i) free(blocks[i]);
  }
  return unused;
}

static void forks(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, churn, NULL);
  char* mine = strdup("parent");
  for (int i = 0; i < 50; ++i) {
    pid_t child = fork();
    if (child == 0) {
      char* copy = strdup(mine);
      mine[0] = 'c';
      for (int k = 0; k < 100; ++k) free(malloc((size_t)k * 100));
      _exit(strcmp(copy, "parent") == 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    expect(status == 0, "the child has the heap");
    expect(strcmp(mine, "parent") == 0, "the child's stores stay there");
  }
  stop = 1;
  pthread_join(thread, NULL);
  free(mine);
}

static void opening_libraries(void) {
  for (int i = 0; i < 20; ++i) {
    void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    expect(handle != NULL, "the library opens");
    if (handle) dlclose(handle);
    dlerror();
  }
}

static void libc_allocates(void) {
  char* line = NULL;
  size_t room = 0;
  FILE* file = fopen("/proc/self/maps", "r");
  size_t lines = 0;
  while (file && getline(&line, &room, file) > 0) ++lines;
  if (file) fclose(file);
  free(line);
  expect(lines > 5, "getline reads");
  char* text = NULL;
  expect(asprintf(&text, "%d", 12345) == 5, "asprintf writes");
  free(text);
  char* path = realpath("/proc/self/../self/exe", NULL);
  expect(path != NULL, "realpath resolves");
  free(path);
}

static void errno_is_kept(void) {
  void* blocks[3] = {malloc(10), malloc(100000), malloc(3000000)};
  errno = 42;
  for (int i = 0; i < 3; ++i) free(blocks[i]);
  expect(errno == 42, "free keeps errno");
}

static char* at_the_end;
static void last(void) {
  free(at_the_end);
  char* late = malloc(1000);
  if (late) printf("ok at-exit\n");
  free(late);
  fflush(stdout);
}

static void run(const char* name, void (*body)(void)) {
  const int before = failures;
  now = name;
  body();
  if (failures == before) printf("ok %s\n", name);
}

int main(int count, char** arguments) {
  library = count > 1 ? arguments[1] : "libm.so.6";
  setvbuf(stdout, NULL, _IOLBF, 0);
  run("of-nothing", of_nothing);
  run("calloc-overflow", calloc_overflow);
  run("calloc-zeroes", calloc_zeroes);
  run("aligned-calls", aligned_calls);
  run("page-calls", page_calls);
  run("bad-alignments", bad_alignments);
  run("usable-size", usable_size);
  run("realloc-growth", realloc_growth);
  run("realloc-shrink", realloc_shrink);
  run("cross-thread-free", cross_thread_free);
  run("threads-exiting", threads_exiting);
  run("fork", forks);
  run("dlopen", opening_libraries);
  run("libc-allocates", libc_allocates);
  run("errno-is-kept", errno_is_kept);
  at_the_end = malloc(50);
  atexit(last);
  return failures != 0;
}
