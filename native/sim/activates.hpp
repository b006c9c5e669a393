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
      : tRRD_(t.tRRD), tRRDL_(std::max(t.tRRD, t.tRRDL)), tFAW_(t.tFAW), t32AW_(t.t32AW) {}

  /// Reserves an activate at the first time from `at` on that violates no rule, but not before the
  /// 32 latest ones. Returns that time.
  Time book(Time at, std::uint32_t group) {
    std::uint64_t index = end_; // of the new activate
    const std::uint64_t first = end_ - std::min(end_, max_later);
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

private:
  static constexpr std::uint64_t max_later = 32;
  static constexpr std::uint64_t size = 64;
  struct Activate {
    Time at = 0;
    std::uint32_t group = 0;
  };

  Activate& of(std::uint64_t index) { return activates_[index % size]; }
  const Activate& of(std::uint64_t index) const { return activates_[index % size]; }

  /// The first time from `at` on that the activates before `index` allow.
  Time earliest(std::uint64_t index, Time at, std::uint32_t group) const {
    if (index == 0) return at;
    at = std::max(at, of(index - 1).at + tRRD_);
    if (index >= 4) at = std::max(at, of(index - 4).at + tFAW_);
    if (t32AW_ && index >= 32) at = std::max(at, of(index - 32).at + t32AW_);
    for (std::uint64_t i = index; i > 0 && index - i < 4 && of(i - 1).at + tRRDL_ > at; --i)
      if (of(i - 1).group == group) at = of(i - 1).at + tRRDL_;
    return at;
  }

  /// Whether the activates from `index` on allow one at `at` before them.
  bool is_allowed(std::uint64_t index, Time at, std::uint32_t group) const {
    if (of(index).at < at + tRRD_) return false;
    for (std::uint64_t i = index; i < end_ && of(i).at < at + tRRDL_; ++i)
      if (of(i).group == group) return false;
    // With the new one, of(i) is the fifth from of(i - 3) on, or from the new one on.
    for (std::uint64_t i = std::max<std::uint64_t>(index, 3); i < std::min(index + 4, end_); ++i)
      if (of(i).at < (i == index + 3 ? at : of(i - 3).at) + tFAW_) return false;
    return true;
  }

  Time tRRD_;
  Time tRRDL_;
  Time tFAW_;
  Time t32AW_;
  std::uint64_t end_ = 0; ///< number of activates
  std::array<Activate, size> activates_{};
};

} // namespace nearfar::sim
