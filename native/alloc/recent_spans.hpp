// Spans that were freed recently, which the decay does not return yet. Each span has its own age,
// because a free run can contain spans of several ticks.
//
// Invariant      bits_[t % 2] has the spans freed in tick t, for the last tick and the one before.
// Thread safety  under the lock of the runs that own it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "alloc/bits.hpp"
#include "os/address_space.hpp"

namespace nearfar::alloc {

class RecentSpans {
public:
  /// Starts without recent spans and with unwritable bits. Returns false if the system has no
  /// memory.
  bool open(std::size_t bytes) {
    for (std::uint64_t*& bits : bits_) {
      bits = reinterpret_cast<std::uint64_t*>(os::map_readable(bytes));
      if (bits == nullptr) return false;
    }
    return true;
  }
  void close(std::size_t bytes) {
    for (std::uint64_t*& bits : bits_) {
      if (bits != nullptr) os::unmap(reinterpret_cast<std::byte*>(bits), bytes);
      bits = nullptr;
    }
    tick_ = 0;
  }

  /// Makes the bits of spans [first, end) writable. An errno.
  int make_writable(std::uint32_t first, std::uint32_t end) const {
    int code = 0;
    for (std::uint64_t* bits : bits_)
      if (code == 0) code = os::make_writable(bits + first / 64, bits + (end + 63) / 64);
    return code;
  }

  /// Starts a tick, unless a later one has started. Spans [first, first + spans) are all that were
  /// used so far.
  void advance(std::uint8_t tick, std::uint32_t first, std::uint32_t spans) {
    const auto passed = static_cast<std::uint8_t>(tick - tick_);
    if (passed == 0 || passed > UINT8_MAX / 2) return; // another thread has seen a later tick
    clear_bits(bits_[tick % 2], first, spans);
    if (passed > 1) clear_bits(bits_[1 - tick % 2], first, spans);
    tick_ = tick;
  }
  void add(std::uint32_t first, std::uint32_t spans) { set_bits(bits_[tick_ % 2], first, spans); }
  void remove(std::uint32_t first, std::uint32_t spans) {
    for (std::uint64_t* bits : bits_)
      clear_bits(bits, first, spans);
  }

  /// The first span of [at, end) that is recent, or that is not recent; `end` if there is none.
  std::uint32_t find(std::uint32_t at, std::uint32_t end, bool recent) const {
    while (at < end) {
      const std::uint64_t set = bits_[0][at / 64] | bits_[1][at / 64];
      const std::uint64_t from_at = (recent ? set : ~set) >> at % 64;
      if (from_at != 0) {
        const std::uint32_t found = at + static_cast<std::uint32_t>(std::countr_zero(from_at));
        return found < end ? found : end;
      }
      at = (at / 64 + 1) * 64;
    }
    return end;
  }

private:
  std::uint64_t* bits_[2] = {};
  std::uint8_t tick_ = 0;
};

} // namespace nearfar::alloc
