#include "inspect/shred.hpp"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <vector>

#include "base/random.hpp"
#include "inspect/header.hpp"
#include "os/block_io.hpp"
#include "os/clock.hpp"

namespace nearfar::inspect {

namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 20;

/// Random bytes of one block; they depend on the block's number, so that reading can repeat them.
void fill(std::vector<std::byte>& block, std::uint64_t seed, std::uint64_t number) {
  Random random(seed + number * 0x9e3779b97f4a7c15u);
  for (std::size_t i = 0; i + 8 <= block.size(); i += 8) {
    const std::uint64_t word = random.next();
    std::memcpy(&block[i], &word, sizeof word);
  }
}

Error stopped() {
  Error error = Error::make(Errc::os_error, "stopped before all of the pool was overwritten");
  error.os_errno = EINTR;
  return error.try_next("give the same command again: it begins anew");
}

class Shredder {
public:
  Shredder(const os::File& file, Offset size, const Progress& progress)
      : file_(file), size_(size), blocks_((size + block_bytes - 1) / block_bytes),
        seed_(os::now_ns()), progress_(progress), wanted_(block_bytes), found_(block_bytes) {}

  Status write() {
    for (std::uint64_t left = blocks_; left > 0; --left) {
      const std::uint64_t number = left - 1;
      fill(wanted_, seed_, number);
      const Status done = os::write_at(file_, wanted_.data(), length(number), number * block_bytes);
      if (!done) return done.error();
      if (!progress_((blocks_ - number) * block_bytes, 2 * blocks_ * block_bytes)) return stopped();
    }
    return os::flush_file(file_);
  }

  Status verify() {
    for (std::uint64_t number = 0; number < blocks_; ++number) {
      fill(wanted_, seed_, number);
      const std::size_t bytes = length(number);
      const Status done = os::read_at(file_, found_.data(), bytes, number * block_bytes);
      if (!done) return done.error();
      if (std::memcmp(wanted_.data(), found_.data(), bytes) != 0)
        return Error::make(Errc::failed_check,
                           "the bytes at %" PRIu64 " are not those that were written",
                           number * block_bytes)
            .try_next("take the medium as faulty: destroy it, or its encryption key");
      if (!progress_((blocks_ + number) * block_bytes, 2 * blocks_ * block_bytes)) return stopped();
    }
    return Done{};
  }

private:
  std::size_t length(std::uint64_t number) const {
    return std::min<Offset>(block_bytes, size_ - number * block_bytes);
  }

  const os::File& file_;
  Offset size_;
  std::uint64_t blocks_;
  std::uint64_t seed_;
  const Progress& progress_;
  std::vector<std::byte> wanted_, found_;
};

Status refuse_others(const PoolView& view, const char* path) {
  switch (identify(view)) {
  case FileKind::object:
  case FileKind::log:
  case FileKind::block: return Done{};
  case FileKind::pool_set:
    return Error::make(Errc::bad_input, "%s only lists the files of a pool set", path)
        .try_next("shred the files that it lists, each by its own path");
  case FileKind::empty:
  case FileKind::other: break;
  }
  return Error::make(Errc::bad_input, "%s is not a pool", path)
      .try_next("nothing was written; for other files there is shred(1)");
}

} // namespace

Result<Shredded> shred(const char* path, const Progress& progress) {
  Result<os::File> file = os::open_existing(path, false);
  if (!file) return file.error();
  Result<std::size_t> size = os::file_size(*file);
  if (!size) return size.error();
  const FileView view(std::move(*file), *size);
  if (const Status pool = refuse_others(view, path); !pool) return pool.error();
  if (const Status alone = os::claim_alone(view.file(), path); !alone) return alone.error();
  Shredded done;
  done.blocks = os::block_reuse(view.file());
  done.bytes = view.size();
  Shredder shredder(view.file(), done.bytes, progress);
  if (const Status written = shredder.write(); !written) return written.error();
  done.read_from_cache = !bool(os::drop_page_cache(view.file(), done.bytes));
  if (const Status same = shredder.verify(); !same) return same.error();
  return done;
}

} // namespace nearfar::inspect
