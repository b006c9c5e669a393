// The bytes of a pool, which may be wrong or be truncated concurrently, and are never written.
//
// Purpose        every read has an offset and a length and may fail. There are no pointers into a
//                mapping, so that a file that is truncated during the read cannot cause SIGBUS.
// Thread safety  a PoolView is used by one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "inspect/layout.hpp"
#include "os/file.hpp"

namespace nearfar::inspect {

/// A number at `at`, little-endian, of any alignment.
template <class Number>
Number load(const std::byte* at) {
  Number number;
  std::memcpy(&number, at, sizeof number);
  return number;
}

class PoolView {
public:
  virtual ~PoolView() = default;

  virtual Offset size() const = 0;

  /// Copies `[offset, offset + bytes)`; false if the view does not hold all of it.
  virtual bool read(Offset offset, void* to, std::size_t bytes) const = 0;

  /// The bytes themselves if they are in memory, else nullptr; same bounds as read().
  virtual const std::byte* bytes_at(Offset, std::size_t) const { return nullptr; }

  template <class Number>
  std::optional<Number> number(Offset offset) const {
    Number value;
    if (!read(offset, &value, sizeof value)) return std::nullopt;
    return value;
  }
};

/// Bytes in memory, which stay where they are.
class MemoryView final : public PoolView {
public:
  explicit MemoryView(std::span<const std::byte> bytes) : bytes_(bytes) {}
  Offset size() const override { return bytes_.size(); }
  bool read(Offset offset, void* to, std::size_t bytes) const override;
  const std::byte* bytes_at(Offset offset, std::size_t bytes) const override;

private:
  std::span<const std::byte> bytes_;
};

/// A file, read by pread; its size is what it was when it was opened.
class FileView final : public PoolView {
public:
  FileView(os::File file, Offset size) : file_(std::move(file)), size_(size) {}
  Offset size() const override { return size_; }
  bool read(Offset offset, void* to, std::size_t bytes) const override;
  const os::File& file() const { return file_; }

private:
  os::File file_;
  Offset size_;
};

/// Opens a regular file for reading; errors as os::open_readonly().
Result<FileView> open_view(const char* path);

/// Another view as it would be after some words were stored into it.
class PatchedView final : public PoolView {
public:
  explicit PatchedView(const PoolView& below) : below_(below) {}
  /// Stores eight bytes; false if they are not within the view.
  bool store(Offset offset, std::uint64_t word);
  Offset size() const override { return below_.size(); }
  bool read(Offset offset, void* to, std::size_t bytes) const override;

private:
  const PoolView& below_;
  std::map<Offset, std::array<std::byte, 8>> words_; ///< by offset / 8: the eight bytes there
};

/// A buffer that turns small reads, most of them in ascending order, into few large ones.
class Window {
public:
  explicit Window(const PoolView& view) : view_(&view) {}

  /// `bytes` at `offset`, valid until the next call; nullptr if out of bounds.
  const std::byte* at(Offset offset, std::size_t bytes) {
    if (offset >= begin_ && offset - begin_ <= held_ && bytes <= held_ - (offset - begin_))
      return from_ + (offset - begin_);
    return fill(offset, bytes);
  }

  static constexpr std::size_t max_bytes = 65536;

private:
  const std::byte* fill(Offset offset, std::size_t bytes);

  const PoolView* view_;
  Offset begin_ = 0;
  std::size_t held_ = 0;
  const std::byte* from_ = nullptr;
  std::vector<std::byte> buffer_;
};

} // namespace nearfar::inspect
