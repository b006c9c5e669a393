#include "os/block_io.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <unistd.h>

#ifdef NEARFAR_HAVE_LIBURING
#include <liburing.h>
#endif

namespace nearfar::os {

namespace {

Error transfer_error(const char* doing, int code) {
  Error error =
      Error::make(code == ENOSPC ? Errc::no_space : Errc::os_error, "%s failed: %s", doing,
                  code == 0 ? "the file is shorter than expected" : std::strerror(code));
  error.os_errno = code;
  return error;
}

} // namespace

Status read_at(const File& file, std::byte* to, std::size_t bytes, std::size_t offset) {
  while (bytes > 0) {
    const ssize_t moved = pread(file.fd(), to, bytes, static_cast<off_t>(offset));
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return transfer_error("pread", moved == 0 ? 0 : errno);
    to += moved;
    offset += static_cast<std::size_t>(moved);
    bytes -= static_cast<std::size_t>(moved);
  }
  return Done{};
}

Status write_at(const File& file, const std::byte* from, std::size_t bytes, std::size_t offset) {
  while (bytes > 0) {
    const ssize_t moved = pwrite(file.fd(), from, bytes, static_cast<off_t>(offset));
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return transfer_error("pwrite", moved == 0 ? 0 : errno);
    from += moved;
    offset += static_cast<std::size_t>(moved);
    bytes -= static_cast<std::size_t>(moved);
  }
  return Done{};
}

Status flush_file(const File& file) {
  if (fdatasync(file.fd()) != 0) return transfer_error("fdatasync", errno);
  return Done{};
}

#ifdef NEARFAR_HAVE_LIBURING

struct Ring::State {
  io_uring ring{};
  int fd = -1;
  ~State() { io_uring_queue_exit(&ring); }
};

Result<Ring> Ring::create(const File& file, unsigned depth) {
  io_uring ring{};
  if (const int code = -io_uring_queue_init(depth, &ring, 0); code != 0)
    return Error::make(Errc::unsupported, "this kernel does not grant io_uring: %s",
                       std::strerror(code))
        .try_next("see /proc/sys/kernel/io_uring_disabled");
  auto state = std::make_unique<State>();
  state->ring = ring;
  state->fd = file.fd();
  return Ring(std::move(state));
}

Status Ring::submit(const Transfer& t) {
  io_uring_sqe* entry = io_uring_get_sqe(&state_->ring);
  if (entry == nullptr) return transfer_error("io_uring", EBUSY);
  const auto bytes = static_cast<unsigned>(t.bytes);
  if (t.write)
    io_uring_prep_write(entry, state_->fd, t.buffer, bytes, t.offset);
  else
    io_uring_prep_read(entry, state_->fd, t.buffer, bytes, t.offset);
  entry->user_data = (std::uint64_t{bytes} << 32) | t.slot;
  if (const int sent = io_uring_submit(&state_->ring); sent < 0)
    return transfer_error("io_uring", -sent);
  return Done{};
}

Result<unsigned> Ring::reap_one() {
  io_uring_cqe* completion = nullptr;
  int code = 0;
  do {
    code = io_uring_wait_cqe(&state_->ring, &completion);
  } while (code == -EINTR);
  if (code < 0) return transfer_error("io_uring", -code);
  const int moved = completion->res;
  const std::uint64_t request = completion->user_data;
  io_uring_cqe_seen(&state_->ring, completion);
  if (moved < 0) return transfer_error("io_uring", -moved);
  if (static_cast<std::uint64_t>(moved) != request >> 32) return transfer_error("io_uring", 0);
  return static_cast<unsigned>(request);
}

#else

struct Ring::State {};

Result<Ring> Ring::create(const File&, unsigned) {
  return Error::make(Errc::unsupported, "nearfar was built without liburing")
      .try_next("install liburing-dev and build again");
}
Status Ring::submit(const Transfer&) { return Done{}; }
Result<unsigned> Ring::reap_one() { return 0u; }

#endif

Ring::Ring(std::unique_ptr<State> state) : state_(std::move(state)) {}
Ring::Ring(Ring&&) noexcept = default;
Ring::~Ring() = default;

} // namespace nearfar::os
