#define _GNU_SOURCE
/* Forks while threads read from streams into blocks that they allocate, and others flush all
 * streams. Argument: how often. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { reader_count = 4, flusher_count = 2, line_bytes = 50000 };

static atomic_bool stop;

static void* read_lines(void* unused) {
  FILE* file = tmpfile();
  for (int i = 0; i < line_bytes; ++i) fputc('x', file);
  fputc('\n', file);
  while (!stop) {
    char* line = NULL;
    size_t bytes = 0;
    rewind(file);
    /* fflush() in a child moves the file offset, which it shares: the line may be cut. */
    if (getline(&line, &bytes, file) < 0) clearerr(file);
    free(line);
    usleep(100);
  }
  fclose(file);
  return unused;
}

static void* flush_all(void* unused) {
  while (!stop) {
    fflush(NULL);
    usleep(100);
  }
  return unused;
}

static int fork_once(void) {
  const pid_t child = fork();
  if (child == 0) {
    char* text = NULL;
    const int printed = asprintf(&text, "%d", (int)getpid());
    free(text);
    fflush(NULL);
    _exit(printed > 0 ? 0 : 1);
  }
  int status = 1;
  return waitpid(child, &status, 0) == child && status == 0;
}

int main(int count, char** arguments) {
  pthread_t threads[reader_count + flusher_count];
  for (int i = 0; i < reader_count + flusher_count; ++i)
    if (pthread_create(threads + i, NULL, i < reader_count ? read_lines : flush_all, NULL) != 0)
      return 1;
  const int wanted = atoi(arguments[count - 1]);
  int done = 0;
  for (int i = 0; i < wanted; ++i) done += fork_once();
  stop = 1;
  for (int i = 0; i < reader_count + flusher_count; ++i) pthread_join(threads[i], NULL);
  printf("%d of %d\n", done, wanted);
  return 0;
}
