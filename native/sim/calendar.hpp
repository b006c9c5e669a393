// A resource that serves one transfer at a time, booked out of order: a data bus, a rank's
// activates.
//
// Requests are timed in the order of the program, not of time: a slow one books the bus far ahead,
// and a quick one behind it must still find the free time before. Time is cut into slots as long as
// one transfer. A free slot is taken at the very time that was asked for; else the next free slot
// is. Two transfers may so overlap by a part of a slot, but never more than one is booked a slot:
// times are unbiased, and the throughput is right.
//
// Thread safety  none.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "sim/device.hpp"

namespace nearfar::sim {

/// floor(at / slot) from 1 / slot; through signed numbers, which processors convert at once.
inline std::uint64_t slot_of(Time at, double per_ps) {
  const double slots = static_cast<double>(static_cast<std::int64_t>(at)) * per_ps;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(slots));
}

class Calendar {
public:
  /// Slots of `slot` picoseconds; 0 for a resource that never makes anyone wait.
  explicit Calendar(Time slot) : slot_(slot), per_ps_(slot ? 1.0 / static_cast<double>(slot) : 0) {}

  /// When a transfer that could begin at `at` does begin. Times may go back by some thousand slots.
  Time book(Time at) {
    if (slot_ == 0) return at;
    auto slot = slot_of(at, per_ps_);
    if (slot < base_) slot = base_;
    if (slot >= base_ + slots) [[unlikely]]
      forget_before(slot);
    const std::uint64_t wanted = slot;
    for (;;) {
      std::uint64_t& word = words_[(slot / 64) % words];
      const unsigned bit = slot % 64;
      const auto taken = static_cast<unsigned>(std::countr_one(word >> bit));
      if (bit + taken < 64) {
        slot += taken;
        word |= std::uint64_t{1} << (bit + taken);
        break;
      }
      slot += 64 - bit;
      if (slot >= base_ + slots) forget_before(slot);
    }
    return slot == wanted && at >= slot * slot_ ? at : slot * slot_;
  }

private:
  static constexpr std::uint64_t words = 64;
  static constexpr std::uint64_t slots = words * 64;

  /// Makes room for `slot`, with half of the calendar behind it.
  void forget_before(std::uint64_t slot) {
    const std::uint64_t base = (slot - slots / 2) / 64 * 64;
    if (base >= base_ + slots) {
      words_.fill(0);
    } else {
      for (std::uint64_t at = base_; at < base; at += 64)
        words_[(at / 64) % words] = 0;
    }
    base_ = base;
  }

  Time slot_;
  double per_ps_;
  std::uint64_t base_ = 0; ///< the earliest slot that is still known; a multiple of 64
  std::array<std::uint64_t, words> words_{};
};

/// So many transfers in each window of time, wherever in it: four activates in tFAW.
class Quota {
public:
  /// Windows of `window` picoseconds; 0 for no limit.
  Quota(Time window, unsigned most)
      : window_(window), per_ps_(window ? 1.0 / static_cast<double>(window) : 0), most_(most) {}

  /// The first time from `at` on whose window has room; takes it.
  Time book(Time at) {
    if (window_ == 0) return at;
    const auto wanted = slot_of(at, per_ps_);
    for (std::uint64_t window = wanted;; ++window) {
      Window& entry = windows_[window % windows_.size()];
      if (entry.number < window) entry = {window, 0};
      if (entry.number > window || entry.taken == most_) continue; // forgotten, or full
      ++entry.taken;
      return window == wanted ? at : window * window_;
    }
  }

private:
  struct Window {
    std::uint64_t number = 0;
    unsigned taken = 0;
  };
  Time window_;
  double per_ps_;
  unsigned most_;
  std::array<Window, 512> windows_{};
};

} // namespace nearfar::sim
