// Reservations of a resource that serves one transfer at a time (a direction of a link).
// Requests may reserve in any order of time.
//
// The fast engine times requests in program order. A slow request reserves the bus far ahead; a
// later request in program order may use the free time before it. Time is divided into slots of the
// length of a transfer, and each slot holds one transfer. A transfer begins at the requested time
// if the slot of that time is free, else at the begin of the next free slot. Two transfers may
// therefore overlap by less than a slot, but the throughput is exact.
//
// Thread safety  none.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "sim/device.hpp"

namespace nearfar::sim {

/// floor(at / slot) from 1 / slot. Signed, because x86 converts signed integers in one instruction.
inline std::uint64_t slot_of(Time at, double per_ps) {
  const double slots = static_cast<double>(static_cast<std::int64_t>(at)) * per_ps;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(slots));
}

class Calendar {
public:
  /// `slot`: duration of a transfer in ps; 0: unlimited.
  explicit Calendar(Time slot) : slot_(slot), per_ps_(slot ? 1.0 / static_cast<double>(slot) : 0) {}

  /// Reserves a transfer at or after `at` and returns when it begins. `at` may be up to 2048 slots
  /// before the latest reservation.
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

  /// Moves the calendar so that `slot` is in its middle.
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
  std::uint64_t base_ = 0; ///< earliest slot of the calendar; a multiple of 64
  std::array<std::uint64_t, words> words_{};
};

} // namespace nearfar::sim
