// A small random number generator with a fixed sequence for each seed.
//
// Purpose        repeatable access patterns; not for cryptography.
// Thread safety  one generator a thread.
#pragma once

#include <cstdint>

namespace nearfar {

/// SplitMix64 (Steele, Lea, Flood 2014): 64 bits of state, period 2^64, about 1 ns a draw.
class Random {
public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  /// Uniform in [0, bound), bound > 0; the bias of the multiply-shift (Lemire 2019, without its
  /// rejection step) is below bound / 2^64.
  std::uint64_t below(std::uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
  }

private:
  std::uint64_t state_;
};

} // namespace nearfar
