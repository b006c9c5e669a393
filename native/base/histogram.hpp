// A histogram of positive integers over many orders of magnitude, for percentiles of latencies.
//
// Buckets are log-linear, 32 per octave, so the error of a percentile is at most 3.2 %.
//
// Thread safety  one histogram a thread.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace nearfar {

class Histogram {
public:
  void record(std::uint64_t value) {
    ++counts_[bucket(value)];
    ++total_;
    if (value > largest_) largest_ = value;
  }

  /// Adds the values of another histogram.
  void add(const Histogram& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i)
      counts_[i] += other.counts_[i];
    total_ += other.total_;
    if (other.largest_ > largest_) largest_ = other.largest_;
  }

  std::uint64_t total() const { return total_; }
  std::uint64_t largest() const { return largest_; }

  /// Upper bound of the bucket that contains the quantile `share` (0 to 1), at most the largest
  /// value; 0 if the histogram is empty.
  std::uint64_t percentile(double share) const {
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(total_));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen > wanted) return upper_bound(i) < largest_ ? upper_bound(i) : largest_;
    }
    return largest_;
  }

  /// Calls visit(upper bound, number of values) for each non-empty bucket, in ascending order.
  template <typename Visit>
  void each(Visit visit) const {
    for (std::size_t i = 0; i < counts_.size(); ++i)
      if (counts_[i]) visit(upper_bound(i), counts_[i]);
  }

private:
  static constexpr unsigned sub_bits = 5;
  static constexpr std::size_t sub_buckets = std::size_t{1} << sub_bits;

  static std::size_t bucket(std::uint64_t value) {
    if (value < sub_buckets) return value;
    const auto shift = static_cast<unsigned>(std::bit_width(value)) - 1 - sub_bits;
    return (std::size_t{shift} + 1) * sub_buckets + ((value >> shift) - sub_buckets);
  }

  static std::uint64_t upper_bound(std::size_t index) {
    if (index < sub_buckets) return index;
    const std::size_t shift = index / sub_buckets - 1;
    return ((index % sub_buckets + sub_buckets + 1) << shift) - 1;
  }

  std::array<std::uint64_t, (64 - sub_bits + 1) * sub_buckets> counts_{};
  std::uint64_t total_ = 0;
  std::uint64_t largest_ = 0;
};

} // namespace nearfar
