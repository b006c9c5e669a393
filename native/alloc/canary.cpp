#include "alloc/canary.hpp"

#include <cstdint>
#include <cstring>

#include "os/process.hpp"

namespace nearfar::alloc {

namespace {

/// The last word of a block: the size and its complement, encrypted by address and process.
std::uint64_t key_of(const void* block) {
  constexpr std::uint64_t multiplier = 0x9e3779b97f4a7c15;
  return (reinterpret_cast<std::uintptr_t>(block) ^ os::process_secret()) * multiplier;
}

/// Never 0: a zero that is stored behind a string is detected.
unsigned char filler_of(std::uint64_t key) { return static_cast<unsigned char>(key >> 56 | 0x81); }

} // namespace

void write_canary(void* block, std::size_t block_bytes, std::size_t size) {
  auto* bytes = static_cast<unsigned char*>(block);
  const std::uint64_t key = key_of(block);
  const std::uint64_t word = (std::uint64_t{size} << 32 | (~size & UINT32_MAX)) ^ key;
  std::memset(bytes + size, filler_of(key), block_bytes - sizeof word - size);
  std::memcpy(bytes + block_bytes - sizeof word, &word, sizeof word);
}

std::size_t read_canary(const void* block, std::size_t block_bytes) {
  const auto* bytes = static_cast<const unsigned char*>(block);
  const std::uint64_t key = key_of(block);
  std::uint64_t word = 0;
  std::memcpy(&word, bytes + block_bytes - sizeof word, sizeof word);
  word ^= key;
  const std::size_t size = word >> 32;
  if ((~word & UINT32_MAX) != size || size > block_bytes - canary_bytes) return damaged;
  for (std::size_t i = size; i < block_bytes - sizeof word; ++i)
    if (bytes[i] != filler_of(key)) return damaged;
  return size;
}

} // namespace nearfar::alloc
