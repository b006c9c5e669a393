#include "os/helper.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/clock.hpp"

namespace nearfar::os {

namespace {

/// Reads all of it; false at the end of the stream, or at `deadline` (0: none).
bool read_whole(int fd, void* to, std::size_t bytes, std::uint64_t deadline, bool& late) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    if (deadline != 0) {
      const std::uint64_t now = now_ns();
      pollfd waiting{fd, POLLIN, 0};
      const std::uint64_t left_ms = now < deadline ? (deadline - now) / 1'000'000 + 1 : 0;
      const int ready = now < deadline ? poll(&waiting, 1, static_cast<int>(left_ms)) : 0;
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) {
        late = ready == 0;
        return false;
      }
    }
    const ssize_t got = read(fd, at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

/// Without a signal if the reader has ended.
bool send_whole(int fd, const void* from, std::size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

/// A length and the bytes.
bool send_text(int fd, std::string_view text) {
  const std::uint64_t bytes = text.size();
  return send_whole(fd, &bytes, sizeof bytes) && send_whole(fd, text.data(), text.size());
}
bool receive_text(int fd, std::string& text, std::uint64_t deadline, bool& late) {
  std::uint64_t bytes = 0;
  if (!read_whole(fd, &bytes, sizeof bytes, deadline, late)) return false;
  text.resize(bytes);
  return read_whole(fd, text.data(), bytes, deadline, late);
}

} // namespace

Helper::~Helper() {
  if (child_ != 0) lost(true);
}

Status Helper::start() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Error::make(Errc::os_error, "cannot make a socket: %s", std::strerror(errno));
  File ours(ends[0]);
  const File theirs(ends[1]);
  child_ = fork();
  if (child_ < 0) {
    child_ = 0;
    return Error::make(Errc::os_error, "cannot make a process: %s", std::strerror(errno))
        .try_next("end other processes, or raise `ulimit -u`");
  }
  if (child_ == 0) run_child(theirs.fd());
  socket_ = std::move(ours);
  return Done{};
}

void Helper::run_child(int fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGPROF, SIGTERM})
    std::signal(signal, SIG_DFL);
  dup2(output_, 1);
  dup2(output_, 2);
  std::string question;
  bool late = false;
  while (receive_text(fd, question, 0, late))
    if (!send_text(fd, serve_(question))) break;
  _exit(0);
}

/// Ends the child, if it has not ended by itself.
Ended Helper::lost(bool hung) {
  if (hung) kill(child_, SIGKILL);
  Ended ended = wait_for(child_);
  ended.hung = hung;
  if (ended.signal == 0 && ended.code == 0) ended.code = 1; // it ended without an answer
  child_ = 0;
  socket_ = File();
  return ended;
}

Result<Helper::Answer> Helper::ask(std::string_view question, std::uint64_t limit_ms) {
  if (child_ == 0)
    if (Status started = start(); !started) return started.error();
  Answer answer;
  bool late = false;
  const std::uint64_t deadline = now_ns() + limit_ms * 1'000'000;
  if (send_text(socket_.fd(), question) && receive_text(socket_.fd(), answer.text, deadline, late))
    return answer;
  answer.ended = lost(late);
  return answer;
}

} // namespace nearfar::os
