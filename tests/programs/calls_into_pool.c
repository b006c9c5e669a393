/* Calls by which the kernel stores to the pool what it knows. With an argument more, one by which it cannot
 * where the recorder has made pages read-only. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int messages(char *pool) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 || write(ends[0], "hello", 5) != 5) return 26;
  if (ioctl(ends[1], FIONREAD, pool + 12288) != 0 || pool[12288] != 5) return 25;
  struct pollfd *polled = (struct pollfd *)pool;
  polled->fd = ends[1], polled->events = POLLIN;
  if (poll(polled, 1, 0) != 1 || polled->revents != POLLIN) return 21;
  const int epoll = epoll_create1(0);
  struct epoll_event wanted = {.events = EPOLLIN}, *got = (struct epoll_event *)(pool + 4096);
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, ends[1], &wanted) != 0) return 22;
  if (epoll_wait(epoll, got, 4, 0) != 1 || got->events != EPOLLIN) return 23;
  char begin[2];
  struct iovec parts[] = {{begin, 2}, {pool + 8192, 100}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  if (recvmsg(ends[1], &message, 0) != 5 || memcmp(pool + 8192, "llo", 3) != 0) return 24;
  return 0;
}

static int more_messages(char *pool) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) != 0) return 30;
  if (send(ends[0], "one", 3, 0) != 3 || send(ends[0], "two", 3, 0) != 3) return 31;
  struct iovec parts[] = {{pool, 100}, {pool + 4096, 100}};
  struct mmsghdr both[] = {{.msg_hdr = {.msg_iov = parts, .msg_iovlen = 1}},
                           {.msg_hdr = {.msg_iov = parts + 1, .msg_iovlen = 1}}};
  if (recvmmsg(ends[1], both, 2, MSG_WAITFORONE, NULL) != 2 || both[1].msg_len != 3) return 32;
  if (memcmp(pool, "one", 3) != 0 || memcmp(pool + 4096, "two", 3) != 0) return 33;
  const int queue = msgget(IPC_PRIVATE, 0600);
  const struct { long kind; char text[8]; } sent = {1, "message"};
  if (queue < 0 || msgsnd(queue, &sent, sizeof sent.text, 0) != 0) return 34;
  const ssize_t got = msgrcv(queue, pool + 8192, sizeof sent.text, 0, 0);
  msgctl(queue, IPC_RMID, NULL);
  if (got != sizeof sent.text || memcmp(pool + 8192, &sent, sizeof sent) != 0) return 35;
  fd_set *ready = (fd_set *)(pool + 12288);
  fd_set asked;
  FD_ZERO(&asked);
  FD_SET(ends[0], &asked);
  memcpy(ready, &asked, sizeof asked);
  memcpy(ready + 1, &asked, sizeof asked);
  msync(ready, 2 * sizeof *ready, MS_SYNC);
  if (select(ends[0] + 1, ready, NULL, ready + 1, &(struct timeval){0, 0}) != 0) return 36;
  if (FD_ISSET(ends[0], ready)) return 37;
  return 0;
}

int main(int argc, char **argv) {
  const int file = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (ftruncate(file, 1 << 20) != 0) return 2;
  char *pool = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (argc > 2) {
    pool[0] = 1;
    if (msync(pool, 4096, MS_SYNC) != 0) return 18;
  }
  if (argc > 2)
    return syscall(SYS_futex, pool + 64, FUTEX_LOCK_PI, 0, NULL) == 0 || errno != EFAULT ? 0 : 3;
  struct stat *facts = (struct stat *)(pool + 20000);
  if (uname((struct utsname *)(pool + 4000)) != 0 || strcmp(pool + 4000, "Linux") != 0) return 4;
  if (fstat(file, facts) != 0 || facts->st_size != 1 << 20) return 5;
  if (stat(argv[1], facts + 1) != 0 || facts[1].st_size != 1 << 20) return 6;
  if (lstat("/proc/self/exe", facts + 2) != 0 || !S_ISLNK(facts[2].st_mode)) return 7;
  if (getcwd(pool + 30000, PATH_MAX) != pool + 30000 || pool[30000] != '/') return 8;
  if (readlink("/proc/self/exe", pool + 40000, PATH_MAX) < 1) return 9;
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, (struct timespec *)(pool + 50000)) != 0) return 10;
  if (gettimeofday((struct timeval *)(pool + 51008), NULL) != 0) return 11;
  if (getrusage(RUSAGE_SELF, (struct rusage *)(pool + 52000)) != 0) return 12;
  if (fstatfs(file, (struct statfs *)(pool + 53000)) != 0) return 13;
  if (pipe((int *)(pool + 54000)) != 0) return 14;
  const pid_t child = fork();
  if (child == 0) _exit(5);
  if (waitpid(child, (int *)(pool + 55000), 0) != child || !WIFEXITED(*(int *)(pool + 55000)))
    return 15;
  struct rusage *used = (struct rusage *)(pool + 57344);
  const pid_t other = fork();
  if (other == 0) _exit(5);
  if (wait4(other, NULL, 0, used) != other || used->ru_maxrss == 0) return 16;
  if (sched_getaffinity(0, sizeof(cpu_set_t), (cpu_set_t *)(pool + 61440)) != 0) return 17;
  sigset_t *blocked = (sigset_t *)(pool + 62464), usual;
  sigemptyset(&usual);
  sigaddset(&usual, SIGUSR1);
  if (pthread_sigmask(SIG_BLOCK, &usual, NULL) != 0) return 19;
  if (sigprocmask(SIG_BLOCK, NULL, blocked) != 0 || !sigismember(blocked, SIGUSR1)) return 20;
  const int failed = messages(pool + 65536);
  if (failed != 0) return failed;
  return more_messages(pool + 131072);
}
