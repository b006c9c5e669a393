// Ranges of bits in arrays of 64-bit words.
#pragma once

#include <bit>
#include <cstdint>

namespace nearfar::alloc {

/// Calls visit(word, mask) for each word that bits [first, first + count) touch; stops when it
/// returns false.
template <class Visit>
void for_bits(std::uint64_t* words, std::uint32_t first, std::uint32_t count, const Visit& visit) {
  const std::uint64_t end = std::uint64_t{first} + count;
  for (std::uint64_t at = first; at < end;) {
    const unsigned low = at % 64;
    const std::uint64_t left = end - at;
    const auto bits = static_cast<unsigned>(left < 64 - low ? left : 64 - low);
    const std::uint64_t mask = (bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1)
                               << low;
    if (!visit(words[at / 64], mask)) return;
    at += bits;
  }
}

inline std::uint32_t count_bits(std::uint64_t* words, std::uint32_t first, std::uint32_t count) {
  std::uint32_t set = 0;
  for_bits(words, first, count, [&](const std::uint64_t& word, std::uint64_t mask) {
    set += static_cast<std::uint32_t>(std::popcount(word & mask));
    return true;
  });
  return set;
}

inline void set_bits(std::uint64_t* words, std::uint32_t first, std::uint32_t count) {
  for_bits(words, first, count, [](std::uint64_t& word, std::uint64_t mask) {
    word |= mask;
    return true;
  });
}

inline void clear_bits(std::uint64_t* words, std::uint32_t first, std::uint32_t count) {
  for_bits(words, first, count, [](std::uint64_t& word, std::uint64_t mask) {
    word &= ~mask;
    return true;
  });
}

inline bool bit_is_set(const std::uint64_t* words, std::uint32_t at) {
  return (words[at / 64] >> (at % 64) & 1) != 0;
}

} // namespace nearfar::alloc
