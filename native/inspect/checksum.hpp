// The checksum of pools: Fletcher's over 32-bit words, both sums modulo 2^32.
//
// Source   J. G. Fletcher, An Arithmetic Checksum for Serial Transmissions, IEEE Trans. Comm. 30,
//          1982; docs/formats/pool.md lists the bytes that count as zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace nearfar::inspect {

class Fletcher64 {
public:
  /// Continues with the sum of an earlier one.
  explicit Fletcher64(std::uint64_t sum = 0)
      : low_(static_cast<std::uint32_t>(sum)), high_(static_cast<std::uint32_t>(sum >> 32)) {}

  /// Adds bytes; bytes beyond the last multiple of four are ignored.
  void add(std::span<const std::byte> bytes);

  /// Adds `bytes` that count as zero.
  void add_zeroes(std::size_t bytes) {
    high_ += low_ * static_cast<std::uint32_t>(bytes / sizeof(std::uint32_t));
  }

  std::uint64_t sum() const { return std::uint64_t{high_} << 32 | low_; }

private:
  std::uint32_t low_;
  std::uint32_t high_;
};

/// The checksum of `bytes`. Two parts count as zero: the eight bytes at `own` (a multiple of four),
/// where the checksum is stored, and all bytes from `end` on.
std::uint64_t checksum(std::span<const std::byte> bytes, std::size_t own, std::size_t end);

/// The same with no other bytes left out.
inline std::uint64_t checksum(std::span<const std::byte> bytes, std::size_t own) {
  return checksum(bytes, own, bytes.size());
}

} // namespace nearfar::inspect
