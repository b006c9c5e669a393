/* System calls that the program makes itself: some store to the pool, others change what it may store to. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile sig_atomic_t faults;
static char *denied;

static void allow(int signal) {
  (void)signal;
  ++faults;
  syscall(SYS_mprotect, denied, 8192, PROT_READ | PROT_WRITE);
}

int main(int argc, char **argv) {
  const int file = open(argv[argc - 1], O_RDWR | O_CREAT, 0600);
  if (ftruncate(file, 1 << 20) != 0) return 2;
  char *pool = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (syscall(SYS_uname, pool) != 0 || strcmp(pool, "Linux") != 0) return 3; /* STORE */
  const int program = open("/proc/self/exe", O_RDONLY);
  if (syscall(SYS_read, program, pool + 4096, 8192) != 8192) return 4; /* STORE */
  if (pread(program, pool + 16384, 8192, 0) != 8192) return 5;
  if (memcmp(pool + 4096, pool + 16384, 8192) != 0) return 6;
  msync(pool + 16384, 8192, MS_SYNC);

  signal(SIGSEGV, allow);
  denied = pool + 65536;
  if (syscall(SYS_mprotect, denied, 8192, PROT_READ) != 0) return 7;
  denied[0] = 1; /* STORE */
  if (pkey_mprotect(denied, 8192, PROT_READ, -1) != 0) return 8;
  denied[64] = 1; /* STORE */
  if (mprotect(pool, 1 << 20, PROT_READ) != 0) return 9;
  pool = mremap(pool, 1 << 20, 1 << 20, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)0x200000000000);
  denied = pool + 131072;
  denied[0] = 1; /* STORE */
  return faults == 3 ? 0 : 10;
}
