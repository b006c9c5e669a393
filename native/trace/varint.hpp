// Numbers in as many bytes as they need (docs/formats/trace.md).
//
// Thread safety  values; a Bytes is used by one thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace nearfar::trace {

/// Small differences of either sign as small numbers.
inline std::uint64_t to_unsigned(std::uint64_t difference) {
  return difference << 1 ^ (difference >> 63 ? ~std::uint64_t{0} : 0);
}
inline std::uint64_t to_signed(std::uint64_t coded) {
  return coded >> 1 ^ (coded & 1 ? ~std::uint64_t{0} : 0);
}

/// A growing array of bytes. Reserves space for a whole number at once, because that is the fast
/// path of the coder of records.
class Bytes {
public:
  void byte(std::uint8_t value) {
    make_room(1);
    bytes_[size_++] = value;
  }
  void number(std::uint64_t value) {
    constexpr std::size_t longest = 10;
    make_room(longest);
    std::uint8_t* to = bytes_.get() + size_;
    for (; value >= 0x80; value >>= 7)
      *to++ = static_cast<std::uint8_t>(value | 0x80);
    *to++ = static_cast<std::uint8_t>(value);
    size_ = static_cast<std::size_t>(to - bytes_.get());
  }
  /// `value` - `before`, either sign, modulo 2^64.
  void difference(std::uint64_t value, std::uint64_t before) {
    number(to_unsigned(value - before));
  }
  void text(const std::string& value) {
    number(value.size());
    raw(value.data(), value.size());
  }
  void raw(const void* data, std::size_t bytes) {
    if (bytes == 0) return;
    make_room(bytes);
    std::memcpy(bytes_.get() + size_, data, bytes);
    size_ += bytes;
  }
  void nest(const Bytes& inner) {
    number(inner.size());
    raw(inner.data(), inner.size());
  }
  void clear() { size_ = 0; }
  const std::uint8_t* data() const { return bytes_.get(); }
  std::size_t size() const { return size_; }

private:
  void make_room(std::size_t bytes) {
    if (capacity_ - size_ < bytes) [[unlikely]]
      grow(bytes);
  }
  [[gnu::noinline]] void grow(std::size_t bytes) {
    capacity_ = std::max(2 * capacity_, size_ + bytes);
    auto larger = std::make_unique_for_overwrite<std::uint8_t[]>(capacity_);
    if (size_ > 0) std::memcpy(larger.get(), bytes_.get(), size_);
    bytes_ = std::move(larger);
  }

  std::unique_ptr<std::uint8_t[]> bytes_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

/// Reads what Bytes wrote. Past the end, and on a number of more than ten bytes, it fails, stays
/// failed, and yields zeros.
class Cursor {
public:
  Cursor() = default;
  Cursor(const std::uint8_t* data, std::size_t bytes) : at_(data), end_(data + bytes) {}

  std::uint8_t byte() {
    if (at_ == end_) {
      fail();
      return 0;
    }
    return *at_++;
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70 && at_ != end_; shift += 7) {
      const std::uint8_t next = *at_++;
      value |= std::uint64_t{next & 0x7fu} << (shift & 63);
      if (next < 0x80) return value;
    }
    fail();
    return 0;
  }
  std::uint64_t difference(std::uint64_t before) { return before + to_signed(number()); }
  std::string text() {
    const std::uint64_t bytes = number();
    if (bytes > left()) {
      fail();
      return {};
    }
    std::string value(reinterpret_cast<const char*>(at_), bytes);
    at_ += bytes;
    return value;
  }
  /// The bytes that nest() appended.
  Cursor nested() {
    const std::uint64_t bytes = number();
    if (bytes > left()) {
      fail();
      return {};
    }
    at_ += bytes;
    return {at_ - bytes, bytes};
  }
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  bool failed() const { return failed_; }

private:
  void fail() {
    failed_ = true;
    at_ = end_;
  }

  const std::uint8_t* at_ = nullptr;
  const std::uint8_t* end_ = nullptr;
  bool failed_ = false;
};

} // namespace nearfar::trace
