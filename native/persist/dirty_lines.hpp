// Lines of a pool that were changed and are not written back yet.
//
// add() filters most repetitions by a direct-mapped table. A line that another one has replaced in
// the table is added again, which only costs a flush of a clean line.
// Units          offsets from the pool's start; a line is named by the offset of its first byte.
// Thread safety  one thread at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "os/cpu.hpp"

namespace nearfar::persist {

class DirtyLines {
public:
  /// `expected`: number of lines between two calls of clear().
  explicit DirtyLines(std::size_t expected)
      : places_(std::bit_ceil(std::clamp(expected, smallest, largest)), none),
        shift_(std::countl_zero(places_.size() - 1)) {}

  /// Adds the lines of [offset, offset + bytes), bytes > 0.
  void add(std::uint64_t offset, std::uint64_t bytes) {
    const std::uint64_t last = (offset + bytes - 1) & ~(line_bytes - 1);
    for (std::uint64_t line = offset & ~(line_bytes - 1); line <= last; line += line_bytes) {
      std::uint64_t& place = places_[line * golden >> shift_];
      if (place == line) continue;
      place = line;
      lines_.push_back(line);
    }
  }
  bool empty() const { return lines_.empty(); }
  /// The changed lines; of those in one block of `unit` bytes (a power of two), only one.
  const std::vector<std::uint64_t>& one_a_unit(std::uint64_t unit) {
    if (unit > line_bytes) {
      std::sort(lines_.begin(), lines_.end());
      const auto together = [&](std::uint64_t a, std::uint64_t b) { return (a ^ b) < unit; };
      lines_.erase(std::unique(lines_.begin(), lines_.end(), together), lines_.end());
    }
    return lines_;
  }
  void clear() {
    lines_.clear();
    std::fill(places_.begin(), places_.end(), none);
  }

private:
  static constexpr std::uint64_t line_bytes = os::cache_line_bytes;
  static constexpr std::uint64_t none = ~std::uint64_t{0};     ///< not the offset of a line
  static constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u; ///< Fibonacci hashing (Knuth)
  static constexpr std::size_t smallest = 64, largest = 16384;

  std::vector<std::uint64_t> places_;
  int shift_;
  std::vector<std::uint64_t> lines_;
};

} // namespace nearfar::persist
