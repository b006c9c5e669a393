// Number of accesses that ended in each interval of a run.
//
// There are max_intervals intervals of equal length. When time exceeds the last one, pairs of
// intervals are joined and the length doubles.
// Thread safety  one thread.
#pragma once

#include <array>
#include <cstddef>

#include "sim/device.hpp"

namespace nearfar::sim {

class Timeline {
public:
  static constexpr std::size_t max_intervals = 256;

  void add(Time at) {
    while (at >> shift_ >= max_intervals) [[unlikely]]
      join_pairs();
    ++counts_[at >> shift_];
  }

  void add(const Timeline& other) {
    while (shift_ < other.shift_)
      join_pairs();
    for (std::size_t i = 0; i < max_intervals; ++i)
      counts_[i >> (shift_ - other.shift_)] += other.counts_[i];
  }

  Time interval() const { return Time{1} << shift_; }
  /// By interval i, which begins at i * interval().
  const std::array<std::uint64_t, max_intervals>& counts() const { return counts_; }

private:
  static constexpr unsigned first_shift = 16; ///< 66 ns

  void join_pairs() {
    for (std::size_t i = 0; i < max_intervals; ++i)
      counts_[i] = 2 * i < max_intervals ? counts_[2 * i] + counts_[2 * i + 1] : 0;
    ++shift_;
  }

  unsigned shift_ = first_shift;
  std::array<std::uint64_t, max_intervals> counts_{};
};

} // namespace nearfar::sim
