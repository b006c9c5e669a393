// The activates of a rank in order of time. They may be reserved in any order.
//
// Rules          tRRD between two activates of the rank, tRRDL of a group; at most 4 in tFAW and 32
//                in t32AW.
// Thread safety  none.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "sim/device.hpp"

namespace nearfar::sim {

class Activates {
public:
  explicit Activates(const Timing& t)
      : tRRD_(t.tRRD), tRRDL_(std::max(t.tRRD, t.tRRDL)), tFAW_(t.tFAW), t32AW_(t.t32AW),
        begin_(std::max({tRRDL_, tFAW_, t32AW_})) {}

  /// Reserves an activate at the first time from `at` on that violates no rule, but not before the
  /// 32 latest ones. Returns that time.
  Time book(Time at, std::uint32_t group) {
    at += begin_;
    if (of(end_ - 1).at > at) [[unlikely]]
      return insert(at, group) - begin_;
    at = earliest(end_, at, group);
    of(end_++) = {at, group};
    return at - begin_;
  }

private:
  static constexpr std::uint64_t max_later = 32;
  static constexpr std::uint64_t size = 64;
  struct Activate {
    Time at = 0; ///< counted from begin_ before the start
    std::uint32_t group = ~std::uint32_t{0};
  };

  Activate& of(std::uint64_t index) { return activates_[index % size]; }
  const Activate& of(std::uint64_t index) const { return activates_[index % size]; }

  /// book() of an activate that may be before others.
  Time insert(Time at, std::uint32_t group) {
    std::uint64_t index = end_; // of the new activate
    const std::uint64_t first = end_ - std::min(end_ - none, max_later);
    while (index > first && of(index - 1).at > at)
      --index;
    for (;; ++index) {
      at = earliest(index, at, group);
      if (index == end_) break;
      if (of(index).at > at && is_allowed(index, at, group)) break;
    }
    for (std::uint64_t later = end_++; later > index; --later)
      of(later) = of(later - 1);
    of(index) = {at, group};
    return at;
  }

  /// The first time from `at` on that the activates before `index` allow.
  Time earliest(std::uint64_t index, Time at, std::uint32_t group) const {
    at = std::max({at, of(index - 1).at + tRRD_, of(index - 4).at + tFAW_});
    if (t32AW_) at = std::max(at, of(index - 32).at + t32AW_);
    for (std::uint64_t back = 1; back <= 4 && of(index - back).at + tRRDL_ > at; ++back)
      if (of(index - back).group == group) at = of(index - back).at + tRRDL_;
    return at;
  }

  /// Whether the activates from `index` on allow one at `at` before them.
  bool is_allowed(std::uint64_t index, Time at, std::uint32_t group) const {
    if (of(index).at < at + tRRD_) return false;
    for (std::uint64_t i = index; i < end_ && of(i).at < at + tRRDL_; ++i)
      if (of(i).group == group) return false;
    // With the new one, of(i) is the fifth from of(i - 3) on, or from the new one on.
    for (std::uint64_t i = index; i < std::min(index + 4, end_); ++i)
      if (of(i).at < (i == index + 3 ? at : of(i - 3).at) + tFAW_) return false;
    return true;
  }

  /// Number of activates before the first one: at 0, so that they are too old for each rule.
  static constexpr std::uint64_t none = size;

  Time tRRD_;
  Time tRRDL_;
  Time tFAW_;
  Time t32AW_;
  Time begin_; ///< the longest distance of a rule
  std::uint64_t end_ = none;
  std::array<Activate, size> activates_{};
};

} // namespace nearfar::sim
