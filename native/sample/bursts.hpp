// When the events of a running process are enabled: for one reading of the rings, then disabled for
// some, whose number varies so that nothing periodic is always missed.
//
// Why            a clock of a thread is programmed anew each time that the thread gets a CPU. In a
//                virtual machine this costs some microseconds, which a service that waits for each
//                request pays for each of them. While the events are disabled, it pays nothing.
// Thread safety  none.
#pragma once

#include <cstdint>

namespace nearfar::sample {

class Bursts {
public:
  /// Readings for one with enabled events, in the mean.
  static constexpr unsigned one_in = 6;

  /// Enabled from now on.
  explicit Bursts(std::uint64_t now_ns) : last_ns_(now_ns) {}

  /// At a reading: decides whether the events are enabled until the next one. True if that changes.
  bool advance(std::uint64_t now_ns);
  bool enabled() const { return enabled_; }
  /// Fraction of the time so far with enabled events; 1 before the first reading.
  double enabled_share() const;

private:
  bool enabled_ = true;
  unsigned left_ = 0; ///< readings until the next change, less one
  std::uint64_t random_ = 1;
  std::uint64_t last_ns_;
  std::uint64_t enabled_ns_ = 0;
  std::uint64_t disabled_ns_ = 0;
};

} // namespace nearfar::sample
