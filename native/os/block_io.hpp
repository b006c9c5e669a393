// Reading and writing a file by blocks: pread() and pwrite(), and io_uring.
//
// Thread safety  different blocks of one file may be moved from different threads; a Ring belongs
//                to one thread.
#pragma once

#include <cstddef>
#include <memory>

#include "base/result.hpp"
#include "os/file.hpp"

namespace nearfar::os {

/// Transfers whole blocks, or returns an error; continues a short transfer.
Status read_at(const File& file, std::byte* to, std::size_t bytes, std::size_t offset);
Status write_at(const File& file, const std::byte* from, std::size_t bytes, std::size_t offset);

/// fdatasync: returns when the data is on the device, as far as the device reports.
Status flush_file(const File& file);

/// One transfer of a ring: `buffer` must stay valid until it is reaped.
struct Transfer {
  unsigned slot; ///< the caller's number, returned when it is reaped
  bool write;
  std::byte* buffer;
  std::size_t bytes;
  std::size_t offset;
};

/// An io_uring of fixed depth over one file. Where the library was built without liburing, or the
/// kernel forbids io_uring, create() fails with unsupported.
class Ring {
public:
  static Result<Ring> create(const File& file, unsigned depth);
  Ring(Ring&&) noexcept;
  ~Ring();

  Status submit(const Transfer& transfer); ///< at most `depth` may be under way
  Result<unsigned> reap_one();             ///< waits for any of them; returns its slot

private:
  struct State;
  explicit Ring(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

} // namespace nearfar::os
