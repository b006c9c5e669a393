// The time stamp counter: the only clock that is fast enough to time a single access.
#pragma once

#include <cstdint>
#include <x86intrin.h>

namespace nearfar::os {

/// Read before what is timed: earlier instructions are finished, later ones have not begun.
inline std::uint64_t tsc_begin() {
  _mm_lfence();
  const std::uint64_t t = __rdtsc();
  _mm_lfence();
  return t;
}

/// Read after what is timed: all of it is finished.
inline std::uint64_t tsc_end() {
  unsigned processor = 0;
  const std::uint64_t t = __rdtscp(&processor);
  _mm_lfence();
  return t;
}

/// Nanoseconds of one tick, measured once against the system's clock (takes 20 ms the first time).
double tsc_tick_ns();

/// Ticks that an empty tsc_begin(), tsc_end() pair takes: the median of 1,000.
std::uint64_t tsc_own_ticks();

} // namespace nearfar::os
