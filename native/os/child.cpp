#include "os/child.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace nearfar::os {

namespace {

/// The name of a file that cannot be executed is an error of the caller.
Errc code_of(int failed) {
  if (failed == ENOENT) return Errc::not_found;
  return failed == ENOEXEC || failed == EACCES ? Errc::bad_input : Errc::os_error;
}

Result<pid_t> start(char* const* arguments, const char* input, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  posix_spawn_file_actions_adddup2(&actions, output, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, arguments[0], &actions, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    return Error::make(code_of(failed), "cannot run '%s': %s", arguments[0], std::strerror(failed))
        .try_next(failed == ENOEXEC
                      ? "name a program of this machine, or a script that begins with #!"
                      : "name a program that exists and may be run");
  return child;
}

/// Whether the child ended in time.
bool wait_until(pid_t child, std::uint64_t limit_ms) {
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  if (handle < 0) return true; // an old kernel: no limit
  pollfd waiting{handle, POLLIN, 0};
  int ready = 0;
  do
    ready = poll(&waiting, 1, static_cast<int>(limit_ms));
  while (ready < 0 && errno == EINTR);
  close(handle);
  return ready > 0;
}

} // namespace

Ended wait_for(pid_t child) {
  Ended ended;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  if (WIFSIGNALED(status))
    ended.signal = WTERMSIG(status);
  else
    ended.code = WEXITSTATUS(status);
  return ended;
}

Result<Ended> run_program(char* const* arguments, const char* input, int output,
                          std::uint64_t limit_ms) {
  Result<pid_t> child = start(arguments, input, output);
  if (!child) return child.error();
  const bool hung = !wait_until(*child, limit_ms);
  if (hung) kill(-*child, SIGKILL);
  Ended ended = wait_for(*child);
  ended.hung = hung;
  return ended;
}

std::string last_line(const File& file) {
  char tail[513] = "";
  const off_t end = lseek(file.fd(), 0, SEEK_END);
  const off_t from = end > 512 ? end - 512 : 0;
  const ssize_t got = pread(file.fd(), tail, 512, from);
  std::string text(tail, got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

void empty(const File& file) {
  if (ftruncate(file.fd(), 0) != 0)
    return; // then an older line is reported, which does not affect the verdict
  lseek(file.fd(), 0, SEEK_SET);
}

} // namespace nearfar::os
