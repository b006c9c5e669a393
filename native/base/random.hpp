// A small random number generator with a fixed sequence for each seed.
//
// Purpose        repeatable access patterns; not for cryptography.
// Thread safety  one generator a thread.
#pragma once

#include <cstdint>

namespace nearfar {

/// A word scaled to [0, bound), bound > 0: the multiply-shift of Lemire 2019 without its rejection
/// step; the bias is below bound / 2^64.
inline std::uint64_t scaled(std::uint64_t word, std::uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(word) * bound) >> 64);
}

/// The next state of Knuth's MMIX linear congruential generator: one multiplication, for timed
/// loops. Its high bits are the random ones.
inline std::uint64_t next_mmix(std::uint64_t state) {
  return state * 6364136223846793005u + 1442695040888963407u;
}

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

  /// Uniform in [0, bound), bound > 0.
  std::uint64_t below(std::uint64_t bound) { return scaled(next(), bound); }

private:
  std::uint64_t state_;
};

} // namespace nearfar
