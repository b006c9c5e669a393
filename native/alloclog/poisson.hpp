// Sampling of small blocks by bytes: distances between sampled bytes are exponential, as in the
// heap profilers of tcmalloc and jemalloc.
//
// Equation       a block of s bytes is sampled with p = 1 - exp(-s/T), T being the mean distance.
//                It represents 1/p blocks and s/p bytes, which makes the totals unbiased.
// Source         Horvitz and Thompson, "A generalization of sampling without replacement from a
//                finite universe", JASA 47 (1952) 663-685.
// Freestanding   needs no math library: it runs inside other programs.
#pragma once

#include <bit>
#include <cstdint>

#include "alloclog/format.hpp"

namespace nearfar::alloclog {

inline constexpr double mean_distance_bytes = 64 << 10;

/// Blocks and bytes that a tracked block represents.
struct Weight {
  std::uint64_t allocations; ///< in units of 1/256
  std::uint64_t bytes;
};

/// 1/p by the series 1/(1 - exp(-x)) = 1/x + 1/2 + x/12 - x³/720, whose error is below 0.01 % for
/// small blocks. Large blocks count for themselves. 0 bytes are sampled as 1.
constexpr Weight weight_of(std::uint64_t bytes) {
  if (bytes >= large_bytes) return {allocation_unit, bytes};
  const double x = static_cast<double>(bytes == 0 ? 1 : bytes) / mean_distance_bytes;
  const double blocks = 1 / x + 0.5 + x / 12 - x * x * x / 720;
  return {static_cast<std::uint64_t>(blocks * allocation_unit + 0.5),
          static_cast<std::uint64_t>(blocks * static_cast<double>(bytes) + 0.5)};
}

/// Natural logarithm of a normal positive number; relative error below 1e-6.
inline double natural_log(double value) {
  constexpr double ln2 = 0.6931471805599453;
  constexpr int bias = 1023;
  constexpr int mantissa_bits = 52;
  auto bits = std::bit_cast<std::uint64_t>(value);
  const int exponent = static_cast<int>(bits >> mantissa_bits) - bias;
  bits =
      (bits & ((std::uint64_t{1} << mantissa_bits) - 1)) | (std::uint64_t{bias} << mantissa_bits);
  const double mantissa = std::bit_cast<double>(bits); // in [1, 2)
  // ln m = 2 atanh((m - 1) / (m + 1))
  const double z = (mantissa - 1) / (mantissa + 1);
  const double z2 = z * z;
  const double series =
      1 + z2 * (1.0 / 3 + z2 * (1.0 / 5 + z2 * (1.0 / 7 + z2 * (1.0 / 9 + z2 / 11))));
  return exponent * ln2 + 2 * z * series;
}

/// The distance to the next sampled byte, from 64 random bits.
inline std::int64_t next_distance(std::uint64_t random) {
  constexpr double unit = 1.0 / 9007199254740992.0; // 2^-53
  const double uniform = (static_cast<double>(random >> 11) + 0.5) * unit;
  return static_cast<std::int64_t>(-natural_log(uniform) * mean_distance_bytes);
}

} // namespace nearfar::alloclog
