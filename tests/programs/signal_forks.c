/* Forks in a signal handler, which interrupts malloc(), free() and fork() of the main program.
 * Arguments: how many forks the handler makes, how many other threads allocate meanwhile, below how
 * many bytes blocks are, how many empty fork handlers fork() has to read, and how many threads fork
 * meanwhile.
 * Prints whether all children ended well. Ends by SIGALRM if no fork ends for a minute. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned block_limit = 100000;
static volatile sig_atomic_t failed, stop;
enum { no_progress_s = 60 };
static int wanted = 100;
static volatile int* made; /* shared with the sender, which waits for the handler */

static void fork_now(int number) {
  const int code = errno;
  (void)number;
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (child < 0 || status != 0) ++failed;
  if (++*made < wanted) alarm(no_progress_s);
  errno = code;
}

static void* churn(void* unused) {
  void* blocks[64] = {0};
  for (unsigned i = 1; !stop; i = i * 1664525u + 1013904223u) {
    void** at = &blocks[i >> 26];
    free(*at);
    *at = malloc((i >> 8) % block_limit);
  }
  for (int i = 0; i < 64; ++i)
    free(blocks[i]);
  return unused;
}

static void* fork_again_and_again(void* unused) {
  while (!stop) {
    const pid_t child = fork();
    if (child == 0) {
      free(malloc(50000));
      _exit(0);
    }
    int status = -1;
    if (waitpid(child, &status, 0) != child || status != 0) ++failed;
  }
  return unused;
}

static void work(unsigned* seed, void* blocks[64]) {
  *seed = *seed * 1664525u + 1013904223u;
  void** at = &blocks[*seed >> 26];
  free(*at);
  *at = malloc((*seed >> 8) % block_limit);
  if (*seed >> 30 != 0) return;
  const pid_t child = fork();
  if (child == 0) { /* goes on with what the fork and malloc() were about */
    free(malloc(50000));
    _exit(0);
  }
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (child < 0 || status != 0) ++failed;
}

static pid_t start_sender(void) {
  const pid_t parent = getpid();
  const pid_t sender = fork();
  if (sender != 0) return sender;
  for (int sent = 0; getppid() == parent && kill(parent, SIGUSR1) == 0; ++sent) {
    while (*made == sent && getppid() == parent)
      usleep(50);
    usleep((useconds_t)(sent * 37 % 500));
  }
  _exit(0);
}

int main(int count, char** arguments) {
  if (count > 1) wanted = atoi(arguments[1]);
  const int threads = count > 2 ? atoi(arguments[2]) : 0;
  if (count > 3) block_limit = (unsigned)atoi(arguments[3]);
  for (int left = count > 4 ? atoi(arguments[4]) : 0; left > 0; --left)
    pthread_atfork(NULL, NULL, NULL);
  const int forkers = count > 5 ? atoi(arguments[5]) : 0;
  pthread_t others[16];
  void* blocks[64] = {0};
  unsigned seed = 1;
  sigset_t usr1;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  made = mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_sigmask(SIG_BLOCK, &usr1, NULL); /* other threads do not take it */
  for (int t = 0; t < threads && t < 8; ++t)
    pthread_create(&others[t], NULL, churn, NULL);
  for (int t = 0; t < forkers && t < 8; ++t)
    pthread_create(&others[8 + t], NULL, fork_again_and_again, NULL);
  struct sigaction action = {.sa_handler = fork_now, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, NULL);
  alarm(no_progress_s);
  const pid_t sender = start_sender();
  pthread_sigmask(SIG_UNBLOCK, &usr1, NULL);
  while (*made < wanted)
    work(&seed, blocks);
  pthread_sigmask(SIG_BLOCK, &usr1, NULL);
  kill(sender, SIGKILL);
  waitpid(sender, NULL, 0);
  stop = 1;
  for (int t = 0; t < threads && t < 8; ++t)
    pthread_join(others[t], NULL);
  for (int t = 0; t < forkers && t < 8; ++t)
    pthread_join(others[8 + t], NULL);
  printf("%s\n", failed == 0 ? "all forks well" : "some forks failed");
  return failed != 0;
}
