// Reads the fields of a record or file in the byte order of this machine, within their bounds.
//
// Errors         a read beyond the end yields zero and makes ok() false from then on, so that a
//                decoder checks once at its end.
// Alignment      none required.
// Thread safety  values, no shared state.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace nearfar::perf {

using ByteSpan = std::span<const std::uint8_t>;

class Fields {
public:
  explicit Fields(ByteSpan bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  ByteSpan rest() const { return rest_; }

  template <class T>
  T read() {
    T value{};
    if (const ByteSpan bytes = take(sizeof value); !bytes.empty())
      std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::uint64_t u64() { return read<std::uint64_t>(); }
  std::uint32_t u32() { return read<std::uint32_t>(); }

  /// The next `bytes`; empty beyond the end.
  ByteSpan take(std::uint64_t bytes) {
    if (bytes > rest_.size()) {
      fail();
      return {};
    }
    const ByteSpan taken = rest_.first(static_cast<std::size_t>(bytes));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

  void skip(std::uint64_t bytes) { take(bytes); }

  /// Skips `count` elements of `bytes` each; the product is never computed before it is known to
  /// fit.
  void skip_array(std::uint64_t count, std::uint64_t bytes) {
    if (bytes != 0 && count > rest_.size() / bytes)
      fail();
    else
      skip(count * bytes);
  }

  /// All that is left, up to the first NUL if there is one.
  std::string_view text() {
    const ByteSpan all = take(rest_.size());
    const auto* first = reinterpret_cast<const char*>(all.data());
    return {first, all.empty() ? 0 : strnlen(first, all.size())};
  }

private:
  void fail() {
    ok_ = false;
    rest_ = {};
  }

  ByteSpan rest_;
  bool ok_ = true;
};

} // namespace nearfar::perf
