// SPDX-License-Identifier: MIT (LICENSE in this folder)
// Finds the load that produced the address of a miss.
//
// An address depends on a recent load if one of these holds:
//
// Pointer        it lies up to a page behind a word of a line that was loaded recently.
// Index          it is base + value * 2^n with the base of the previous time, where value is what
//                the same instruction, or any other, loaded last. After a leap of more than a page,
//                value may be off by up to two, as an index is to which a bit was added. Not if the
//                address advances by a constant stride, as successive numbers do, unless the
//                instruction can have loaded its own next address.
// Thread safety  one thread.
#pragma once

#include <cstdint>

#include "trace/recorder/ring.hpp"

namespace nearfar::trace {

/// Works on zeroed memory.
class DependenceDetector {
public:
  /// A bit of `code`: the instruction overwrites a register of its address with what it loads.
  static constexpr std::uint64_t pointer_chase = std::uint64_t{1} << 62;
  static constexpr unsigned recent_lines = 8;

  /// No load is recent any more.
  void forget() { recent_count_ = 0; }

  /// Number of the recent missed load that produced the address: 1 the last, 0 none. Updates the
  /// history of the instruction. `value`: the loaded one, value_at(address).
  std::uint8_t find(std::uint64_t address, std::uint64_t code, bool store, std::uint64_t value) {
    const bool indexed = is_indexed(address, code, store, value);
    const unsigned known = recent_count_ < recent_lines ? recent_count_ : recent_lines;
    const unsigned candidates = near(address) | near(address - reach);
    for (unsigned back = 1; back <= known && candidates != 0; ++back) {
      const unsigned number = (recent_count_ - back) % recent_lines;
      const RecentLine& recent = recent_[number];
      for (unsigned i = 0; i < recent.count && (candidates >> number & 1) != 0; ++i)
        if (address - recent.words[i] < reach) return static_cast<std::uint8_t>(back);
    }
    return indexed && known > 0 ? 1 : 0;
  }

  /// A load missed this line. The words are read as they are now: the program has just accessed
  /// the line, so they can be read.
  void add_line(std::uint64_t line) {
    const unsigned number = recent_count_++ % recent_lines;
    RecentLine& recent = recent_[number];
    for (unsigned i = 0; i < recent.count; ++i)
      near(recent.words[i]) &= static_cast<std::uint8_t>(~(1u << number));
    recent.count = 0;
    const auto* words = reinterpret_cast<const std::uint64_t*>(line << ring::line_shift);
    for (unsigned i = 0; i < 8; ++i) {
      recent.words[recent.count] = words[i];
      recent.count += words[i] - min_pointer < max_pointer - min_pointer;
    }
    for (unsigned i = 0; i < recent.count; ++i)
      near(recent.words[i]) |= static_cast<std::uint8_t>(1u << number);
  }

  /// Eight bytes. Those beyond the line count as zero, since the next line may not be mapped.
  static std::uint64_t value_at(std::uint64_t address) {
    const std::uint64_t last_word = address | 56; // of the line, where the address is in it
    const std::uint64_t at = (address & 63) > 56 ? (last_word & ~std::uint64_t{7}) : address;
    std::uint64_t value;
    __builtin_memcpy(&value, reinterpret_cast<const void*>(at), sizeof value);
    return value >> 8 * (address - at);
  }

private:
  struct RecentLine {
    unsigned count;
    std::uint64_t words[8]; ///< of the line when it was missed: those that may be addresses
  };
  /// The last miss of an instruction.
  struct History {
    std::uint64_t code;
    std::uint64_t address;
    std::uint64_t stride;
    std::uint64_t value;
    std::uint64_t bases[4];  ///< one for each value that an address may be made of
    std::uint8_t shift;      ///< of the base that matched last
    std::uint8_t confidence; ///< mismatches that are tolerated before another shift is tried
  };
  static constexpr std::uint8_t max_confidence = 4;
  static constexpr unsigned history_count = 64;
  static constexpr std::uint64_t min_pointer = 1u << 16;
  static constexpr std::uint64_t max_pointer = std::uint64_t{1} << 47;
  static constexpr std::uint64_t reach = 4096;
  static_assert(recent_lines == 8); // bits of a byte

  /// A bit for each recent line that may hold a word of the same page.
  std::uint8_t& near(std::uint64_t address) { return near_[address / reach % sizeof near_]; }

  /// Whether the address is base + value * 2^n with the base of the previous time, and the
  /// instruction does not advance by a constant stride.
  bool is_indexed(std::uint64_t address, std::uint64_t code, bool store, std::uint64_t value) {
    History& history = histories_[(code ^ code >> 6) % history_count];
    const std::uint64_t stride = address - history.address;
    const bool indexed = history.code == code && matches(history, address, stride) &&
                         (stride != history.stride || (code & pointer_chase) != 0);
    if (history.code != code) history.confidence = 0;
    history.code = code;
    history.address = address;
    history.stride = stride;
    history.value = value;
    if (!store) last_value_ = history.value;
    return indexed;
  }

  /// Whether one of the bases is that of the previous time.
  bool matches(History& history, std::uint64_t address, std::uint64_t stride) const {
    constexpr std::uint64_t half = 0xffffffff;
    const bool is_leap = stride + reach > 2 * reach;
    const std::uint64_t slack = is_leap ? std::uint64_t{2} << history.shift : 0;
    const std::uint64_t values[4] = {history.value, history.value & half, last_value_,
                                     last_value_ & half};
    for (unsigned i = 0; i < 4; ++i)
      if (address - (values[i] << history.shift) - history.bases[i] + slack <= 2 * slack) {
        history.confidence = max_confidence;
        return true;
      }
    // Loads that hit are not seen: the value may come from one of them.
    if (history.confidence > 0) {
      --history.confidence;
      return false;
    }
    history.shift = static_cast<std::uint8_t>((history.shift + 1) % 7); // a wrong shift never fits
    for (unsigned i = 0; i < 4; ++i)
      history.bases[i] = address - (values[i] << history.shift);
    return false;
  }

  unsigned recent_count_;
  RecentLine recent_[recent_lines];
  std::uint8_t near_[256];
  History histories_[history_count];
  std::uint64_t last_value_; ///< of the last load that missed
};

} // namespace nearfar::trace
