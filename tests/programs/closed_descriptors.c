/* Closes descriptors that it did not open, as daemons, shells and test suites do, opens files of its
 * own, allocates, forks, and then checks its files.
 * Argument: in, out or err (that standard stream is closed by the caller), low (3 to 255), or all
 * (every descriptor from 3 up). Writes two files `own-N` in the current directory. Ends with 0 if
 * they and the heap hold what was written and a closed stream stayed closed. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { files = 300, block_bytes = 1 << 20, blocks = 24 };
static const char* const streams[] = {"in", "out", "err"};
static int numbers[files];

static int fail(const char* what, int number) {
  fprintf(stderr, "%s %d\n", what, number);
  _exit(1);
}

static void open_own(int which) {
  char name[32];
  snprintf(name, sizeof name, "own-%d", which);
  numbers[which] = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (numbers[which] < 0) fail("cannot open", which);
  if (write(numbers[which], "mine", 4) != 4) fail("cannot write", which);
}

static void check_own(int which) {
  struct stat facts;
  char text[8] = "";
  if (fstat(numbers[which], &facts) != 0) fail("descriptor closed: file", which);
  if (facts.st_size != 4 || facts.st_blocks > 64) fail("file changed:", which);
  if (pread(numbers[which], text, 4, 0) != 4 || strcmp(text, "mine") != 0)
    fail("contents changed:", which);
}

static void churn(unsigned char* held[blocks]) {
  for (int i = 0; i < blocks; ++i) {
    held[i] = malloc(block_bytes);
    if (held[i] == NULL) fail("no memory for block", i);
    memset(held[i], i + 1, block_bytes);
  }
}

static void check_blocks(unsigned char* held[blocks]) {
  for (int i = 0; i < blocks; ++i)
    for (int at = 0; at < block_bytes; ++at)
      if (held[i][at] != i + 1) fail("overwritten: block", i);
}

int main(int count, char** arguments) {
  const char* what = count > 1 ? arguments[1] : "low";
  unsigned char* held[blocks];
  int opened = 4;
  free(malloc(100));
  if (strcmp(what, "low") == 0 || strcmp(what, "all") == 0) {
    const int end = strcmp(what, "low") == 0 ? 256 : (int)sysconf(_SC_OPEN_MAX);
    for (int fd = 3; fd < end; ++fd)
      close(fd);
    opened = files;
  }
  for (int i = 0; i < 3; ++i)
    if (strcmp(what, streams[i]) == 0 && fcntl(i, F_GETFD) >= 0)
      fail("the heap took the number of a closed stream:", i);
  for (int i = 0; i < opened; ++i)
    open_own(i);
  churn(held);
  check_blocks(held);
  for (int i = 0; i < opened; ++i)
    if (numbers[i] > 2) check_own(i);
  const pid_t child = fork();
  if (child == 0) {
    unsigned char* more[blocks];
    churn(more);
    check_blocks(held);
    check_blocks(more);
    for (int i = 0; i < opened; ++i)
      if (numbers[i] > 2) check_own(i);
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  if (status != 0) return 2;
  check_blocks(held);
  for (int i = 0; i < opened; ++i)
    if (numbers[i] > 2) check_own(i);
  return 0;
}
