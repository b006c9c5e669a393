/* A tier in a directory whose file system another process fills up. Arguments: directory, reserve=...
 * Prints how many blocks of 64 KiB were had and touched before hm_malloc failed, and its errno. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nearfar/hmalloc.h>

static void fill(const char* folder, size_t bytes) {
  char path[512];
  snprintf(path, sizeof path, "%s/another-process", folder);
  int file = open(path, O_CREAT | O_WRONLY, 0600);
  char page[4096];
  memset(page, 1, sizeof page);
  for (size_t done = 0; done < bytes; done += sizeof page)
    if (write(file, page, sizeof page) != (ssize_t)sizeof page) break;
  close(file);
}

int main(int count, char** arguments) {
  if (count < 3) return 2;
  char specification[600];
  snprintf(specification, sizeof specification, "file:%s,%s", arguments[1], arguments[2]);
  hm_tier tier = hm_tier_create("disk", specification);
  if (tier < 0) {
    printf("refused: %s\n", hm_error());
    return 3;
  }
  fill(arguments[1], (size_t)20 << 20);
  size_t blocks = 0;
  for (char* block; (block = hm_malloc(tier, 65536)) != NULL; ++blocks)
    for (size_t i = 0; i < 65536; i += 4096) block[i] = 1;
  printf("%zu blocks, then %s\n", blocks, errno == ENOMEM ? "ENOMEM" : strerror(errno));
  return 0;
}
