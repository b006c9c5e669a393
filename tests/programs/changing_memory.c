/* A program that keeps changing its memory, and answers requests meanwhile.
 *
 *   changing_memory FOLDER      requests come in FOLDER/in, answers go to FOLDER/out, two pipes
 *
 * Regions: anonymous (24 MiB, its second half on large pages where there are any), named ("table",
 * 4 MiB on small pages), file (4 MiB of the file FOLDER/shared.data), heap (brk), globals. A thread writes to all of
 * them at random and verifies what it wrote. Requests, a line each:
 *
 *   where REGION|all    pages in memory on node 0 and 1, as the kernel reports them to the program itself
 *   at REGION           its address
 *   back REGION NODE    moves the pages of a region to a node, as another program could
 *   rounds              writes that were made and verified; "wrong" if one was not there
 *   unmap, grow         the anonymous region: gives half of it back; maps and fills 8 MiB more
 *   pin                 makes a page of the named region a buffer that the kernel holds (vmsplice)
 *   fork, join          a child that shares the file, and other memory until it is written; its end
 *   exec                replaces the program by `sleep 1000`
 *   exit                ends
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

enum { page = 4096, mib = 1 << 20 };

struct region {
  const char* name;
  char* at;
  size_t bytes;
};

static char table[2 * mib] = {1};
static char zeroed[2 * mib];
static struct region regions[] = {{"anonymous", NULL, 24 * mib}, {"named", NULL, 4 * mib},
                                  {"file", NULL, 4 * mib},       {"heap", NULL, 4 * mib},
                                  {"globals", table, sizeof table}, {"zeroed", zeroed, sizeof zeroed}};
enum { region_count = sizeof regions / sizeof regions[0] };
static atomic_ulong rounds;
static atomic_int is_wrong;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static char* map(size_t bytes, int flags, int fd) {
  char* at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (at == MAP_FAILED) exit(2);
  return at;
}

/* Each word holds its own address, plus how often it was written in the upper bits. */
static void fill(struct region* region) {
  for (size_t i = 0; i < region->bytes; i += page)
    *(volatile uint64_t*)(region->at + i) = (uintptr_t)(region->at + i);
}

static void* change(void* unused) {
  uint64_t random = 1;
  for (;;) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    struct region* region = &regions[random >> 40 & 3 ? 0 : (random >> 33) % region_count];
    pthread_mutex_lock(&lock);
    volatile uint64_t* word =
        (volatile uint64_t*)(region->at + (random >> 20) % (region->bytes / page) * page);
    const uint64_t value = *word;
    if ((value & 0xffffffffffff) != (uintptr_t)word) is_wrong = 1;
    *word = value + ((uint64_t)1 << 48);
    pthread_mutex_unlock(&lock);
    if (++rounds % 1024 == 0) usleep(1000); /* a service, not a load on a slow machine */
  }
  return unused;
}

static struct region* find(const char* name) {
  for (int i = 0; i < region_count; ++i)
    if (strcmp(regions[i].name, name) == 0) return &regions[i];
  return NULL;
}

static void move(const struct region* region, int node, size_t count[2]) {
  count[0] = count[1] = 0;
  for (size_t i = 0; i < region->bytes; i += page) {
    void* at = region->at + i;
    int status = -1;
    if (node >= 0) syscall(SYS_move_pages, 0, 1ul, &at, &node, &status, 2);
    syscall(SYS_move_pages, 0, 1ul, &at, NULL, &status, 0);
    if (status == 0 || status == 1) ++count[status];
  }
}

static void locate_all(size_t total[2]) {
  total[0] = total[1] = 0;
  for (int i = 0; i < region_count; ++i) {
    size_t count[2];
    move(&regions[i], -1, count);
    total[0] += count[0];
    total[1] += count[1];
  }
}

static void set_up(const char* folder) {
  char path[256];
  regions[0].at = map(regions[0].bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  madvise(regions[0].at + 12 * mib, 12 * mib, MADV_HUGEPAGE);
  regions[1].at = map(regions[1].bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  madvise(regions[1].at, regions[1].bytes, MADV_NOHUGEPAGE);
  prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, regions[1].at, regions[1].bytes, "table");
  snprintf(path, sizeof path, "%s/shared.data", folder);
  const int fd = open(path, O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 4 * mib) != 0) exit(2);
  regions[2].at = map(regions[2].bytes, MAP_SHARED, fd);
  regions[3].at = (char*)(((uintptr_t)sbrk(5 * mib) + page - 1) / page * page);
  for (int i = 0; i < region_count; ++i)
    fill(&regions[i]);
}

static pid_t child;

/* What the child does: it maps the pages of the file too, answers, and waits for its end. */
static void answer_and_wait(FILE* out) {
  for (size_t i = 0; i < regions[2].bytes; i += page)
    (void)*(volatile char*)(regions[2].at + i);
  fprintf(out, "%d\n", getpid());
  fflush(out);
  for (;;)
    pause();
}

static void answer(FILE* out, char* request) {
  size_t count[2];
  char* name = strtok(request, " \n");
  char* argument = strtok(NULL, " \n");
  char* number = strtok(NULL, " \n");
  struct region* region = argument ? find(argument) : NULL;
  if (name == NULL) return;
  if (strcmp(name, "where") == 0 && argument && strcmp(argument, "all") == 0) {
    locate_all(count);
    fprintf(out, "%zu %zu\n", count[0], count[1]);
  } else if (strcmp(name, "where") == 0 && region) {
    move(region, -1, count);
    fprintf(out, "%zu %zu\n", count[0], count[1]);
  } else if (strcmp(name, "at") == 0 && region) {
    fprintf(out, "%p\n", (void*)region->at);
  } else if (strcmp(name, "back") == 0 && region && number) {
    move(region, atoi(number), count);
    fprintf(out, "%zu %zu\n", count[0], count[1]);
  } else if (strcmp(name, "rounds") == 0) {
    fprintf(out, is_wrong ? "wrong\n" : "%lu\n", rounds);
  } else if (strcmp(name, "unmap") == 0) {
    pthread_mutex_lock(&lock);
    regions[0].bytes /= 2;
    munmap(regions[0].at + regions[0].bytes, regions[0].bytes);
    pthread_mutex_unlock(&lock);
    fprintf(out, "done\n");
  } else if (strcmp(name, "grow") == 0) {
    struct region more = {"more", map(8 * mib, MAP_PRIVATE | MAP_ANONYMOUS, -1), 8 * mib};
    fill(&more);
    pthread_mutex_lock(&lock);
    regions[0] = (struct region){"anonymous", more.at, more.bytes};
    pthread_mutex_unlock(&lock);
    fprintf(out, "done\n");
  } else if (strcmp(name, "pin") == 0) {
    int ends[2];
    const struct iovec pinned = {regions[1].at, page};
    const int failed = pipe(ends) != 0 || vmsplice(ends[1], &pinned, 1, 0) != page;
    fprintf(out, failed ? "failed\n" : "done\n");
  } else if (strcmp(name, "fork") == 0) {
    child = fork();
    if (child == 0) answer_and_wait(out);
  } else if (strcmp(name, "join") == 0) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    fprintf(out, "done\n");
  } else if (strcmp(name, "exec") == 0) {
    execlp("sleep", "sleep", "1000", (char*)NULL);
  } else if (strcmp(name, "exit") == 0) {
    exit(0);
  } else {
    fprintf(out, "unknown request\n");
  }
}

int main(int count, char** arguments) {
  char path[256];
  char line[256];
  pthread_t thread;
  if (count != 2) return 2;
  set_up(arguments[1]);
  snprintf(path, sizeof path, "%s/out", arguments[1]);
  FILE* out = fopen(path, "r+e");
  snprintf(path, sizeof path, "%s/in", arguments[1]);
  FILE* in = fopen(path, "r+e");
  if (in == NULL || out == NULL || pthread_create(&thread, NULL, change, NULL) != 0) return 2;
  while (fgets(line, sizeof line, in) != NULL) {
    answer(out, line);
    fflush(out);
  }
  return 0;
}
