/* Closes descriptors 3 to 255, opens files of its own, then stores to the pool. Arguments: the
 * pool, a folder for the files `own-N`. Ends with 0 if the files hold what was written to them. */
#include <fcntl.h>
#include <libpmem.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { files = 300, words = 4096 };

int main(int count, char** arguments) {
  if (count != 3) return 2;
  size_t bytes;
  long* pool = pmem_map_file(arguments[1], 1 << 20, PMEM_FILE_CREATE, 0600, &bytes, NULL);
  if (pool == NULL || chdir(arguments[2]) != 0) return 2;
  for (int fd = 3; fd < 256; ++fd)
    close(fd);
  int own[files];
  for (int i = 0; i < files; ++i) {
    char name[32];
    snprintf(name, sizeof name, "own-%d", i);
    own[i] = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (own[i] < 0 || write(own[i], "mine", 4) != 4) return 2;
  }
  for (int i = 0; i < words; ++i) {
    pool[i] = i + 1;
    pmem_persist(&pool[i], sizeof pool[i]);
  }
  char text[8] = "";
  for (int i = 0; i < files; ++i)
    if (pread(own[i], text, sizeof text, 0) != 4 || memcmp(text, "mine", 4) != 0) return 1;
  return 0;
}
