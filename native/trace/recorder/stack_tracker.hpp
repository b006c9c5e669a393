// SPDX-License-Identifier: MIT (LICENSE in this folder)
// The address range that a thread uses as its stack.
//
// Thread safety  one thread.
#pragma once

#include <cstdint>

namespace nearfar::trace {

/// Works on zeroed memory: the stack is unknown.
class StackTracker {
public:
  bool contains(std::uint64_t address) const { return address >= low_ && address <= high_; }

  /// The stack is known: [low, end).
  void set(std::uint64_t low, std::uint64_t end) {
    low_ = low;
    high_ = end - 1;
  }

  /// Extends the range to a pushed address, by at least a page, so that this is rare. An address
  /// far away belongs to another stack, such as that of a coroutine, which replaces this one.
  void extend(std::uint64_t address) {
    constexpr std::uint64_t page = 4096;
    constexpr std::uint64_t far_away = std::uint64_t{8} << 20;
    const bool is_other = high_ == 0 || address + far_away < low_ || address > high_ + far_away;
    if (is_other || address < low_) low_ = address / page * page;
    if (is_other || address > high_) high_ = address / page * page + page - 1;
    if (is_other) high_ += page;
  }

  std::uint64_t low() const { return low_; }
  std::uint64_t end() const { return high_ + 1; }

private:
  std::uint64_t low_;
  std::uint64_t high_; ///< the last byte
};

} // namespace nearfar::trace
