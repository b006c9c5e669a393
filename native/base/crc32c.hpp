// CRC32C (Castagnoli, polynomial 0x1EDC6F41), by the instruction every x86-64-v2 processor has.
//
// Purpose        checksums of logs and records; finds damage, does not resist an adversary.
// Thread safety  pure functions.
// Freestanding   no exceptions, no std::string.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <nmmintrin.h>

namespace nearfar {

/// The checksum of `bytes` at `data`; `before` is the checksum of what precedes them, 0 if nothing
/// does, so that a checksum can be taken piece by piece. As in RFC 3720: bits inverted at both
/// ends.
inline std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t before = 0) {
  const auto* at = static_cast<const unsigned char*>(data);
  std::uint64_t crc = ~before;
  for (; bytes >= 8; bytes -= 8, at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  auto low = static_cast<std::uint32_t>(crc);
  if (bytes >= 4) {
    std::uint32_t word;
    std::memcpy(&word, at, 4);
    low = _mm_crc32_u32(low, word);
    bytes -= 4, at += 4;
  }
  for (; bytes > 0; --bytes, ++at)
    low = _mm_crc32_u8(low, *at);
  return ~low;
}

} // namespace nearfar
