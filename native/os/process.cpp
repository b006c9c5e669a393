#include "os/process.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/address_space.hpp"
#include "os/signals.hpp"

extern "C" { // of glibc, which declares them in no header
void _IO_list_lock();
void _IO_list_unlock();
void _IO_list_resetlock();
}

namespace nearfar::os {

namespace {

constinit pthread_key_t exit_key{};
constinit bool exit_key_made = false;

/// NAME=VALUE, read byte by byte, so that no buffer for the whole environment is required.
bool initial_environment(const char* name, char* value, std::size_t size) {
  const int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true;
  const std::size_t length = std::strlen(name);
  std::size_t at = 0; // in the current variable
  bool matches = true;
  bool fits = true;
  char text[512];
  for (ssize_t got = read(fd, text, sizeof text); got > 0; got = read(fd, text, sizeof text))
    for (ssize_t i = 0; i < got; ++i, ++at) {
      const char c = text[i];
      if (matches && at > length && c != '\0') {
        if (at - length < size)
          value[at - length - 1] = c, value[at - length] = '\0';
        else
          fits = false;
      }
      if (at <= length && c != (at == length ? '=' : name[at])) matches = false;
      if (c == '\0') at = static_cast<std::size_t>(-1), matches = true;
    }
  close(fd);
  return fits;
}

} // namespace

int read_all(int fd, std::byte* to, std::size_t size, std::size_t& bytes) {
  bytes = 0;
  while (bytes < size) {
    const ssize_t got = read(fd, to + bytes, size - bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    bytes += static_cast<std::size_t>(got);
  }
  return 0;
}

bool environment(const char* name, char* value, std::size_t size) {
  value[0] = '\0';
  if (getauxval(AT_SECURE) != 0) return true;
  if (environ == nullptr) return initial_environment(name, value, size);
  const char* found = std::getenv(name);
  if (found == nullptr) return true;
  const std::size_t length = std::strlen(found);
  if (length >= size) return false;
  std::memcpy(value, found, length + 1);
  return true;
}

int write_all(int fd, const char* text, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t done = write(fd, text, bytes);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return done < 0 ? errno : EIO;
    text += done;
    bytes -= static_cast<std::size_t>(done);
  }
  return 0;
}

int create_text(const char* path) {
  return open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
}
void close_descriptor(int fd) { close(fd); }

bool read_text(const char* path, char* text, std::size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t got = read(fd, text, size - 1);
  close(fd);
  text[got > 0 ? got : 0] = '\0';
  return got > 0;
}

char* read_file(const char* path, std::size_t& bytes) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe is not waited for
  if (fd < 0) return nullptr;
  struct stat facts {};
  std::byte* memory = nullptr;
  if (fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode))
    memory = map_anonymous(static_cast<std::size_t>(facts.st_size) + 1);
  else
    errno = EINVAL;
  const std::size_t size = memory == nullptr ? 0 : static_cast<std::size_t>(facts.st_size);
  if (const int code = read_all(fd, memory, size, bytes); code != 0) {
    unmap(memory, size + 1);
    memory = nullptr;
    errno = code;
  }
  const int code = errno;
  close(fd);
  errno = code;
  return reinterpret_cast<char*>(memory);
}

std::uint64_t process_secret() {
  std::uint64_t secret = 0;
  if (const auto* random = reinterpret_cast<const char*>(getauxval(AT_RANDOM)); random != nullptr)
    std::memcpy(&secret, random, sizeof secret);
  return secret;
}

int process_number() { return static_cast<int>(getpid()); }
int thread_number() { return static_cast<int>(syscall(SYS_gettid)); }
void thread_name(char (&name)[16]) {
  name[0] = '\0';
  prctl(PR_GET_NAME, name);
}

int start_thread(void* (*run)(void*)) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  constexpr std::size_t stack_bytes = std::size_t{256} << 10;
  pthread_attr_setstacksize(&attributes, stack_bytes);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const int code = pthread_create(&thread, &attributes, run, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return code;
}

void name_this_thread(const char* name) { prctl(PR_SET_NAME, name); }

void sleep_ms(unsigned milliseconds) {
  timespec t{static_cast<time_t>(milliseconds / 1000),
             static_cast<long>(milliseconds % 1000) * 1'000'000};
  nanosleep(&t, nullptr);
}

std::uint64_t coarse_ms() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000 +
         static_cast<std::uint64_t>(t.tv_nsec) / 1'000'000;
}

void at_thread_exit(void (*run)(void*)) { exit_key_made = pthread_key_create(&exit_key, run) == 0; }
void set_thread_value(void* value) {
  if (exit_key_made) pthread_setspecific(exit_key, value);
}

namespace {

__thread SignalMask mask_before_fork __attribute__((tls_model("initial-exec")));

void block_for_fork() { mask_before_fork = block_signals(); }
void restore_after_fork() { restore_signals(mask_before_fork); }

} // namespace

void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) {
  // Of the functions to call before, the last one is called first; of the others the first one.
  pthread_atfork(before, in_parent, in_child);
  // The lock is recursive, and fork() takes it once more.
  pthread_atfork(_IO_list_lock, _IO_list_unlock, _IO_list_resetlock);
  pthread_atfork(block_for_fork, restore_after_fork, restore_after_fork);
}

void pause_fork(unsigned milliseconds) {
  _IO_list_unlock();
  sleep_ms(milliseconds);
  _IO_list_lock();
}

void at_exit(void (*run)()) { std::atexit(run); }

bool on_signal(int number, void (*run)(int)) {
  struct sigaction was {};
  if (sigaction(number, nullptr, &was) != 0 || was.sa_handler != SIG_DFL) return false;
  struct sigaction now {};
  now.sa_handler = run;
  now.sa_flags = SA_RESTART;
  return sigaction(number, &now, nullptr) == 0;
}

void abort_process() { std::abort(); }
void exit_process(int code) { _exit(code); }

} // namespace nearfar::os
