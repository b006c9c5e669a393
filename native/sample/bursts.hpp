// Enables the events of a running process in bursts: for one reading of the rings, then disables
// them for some readings. The number of these varies, so that no periodic behavior is always
// missed.
//
// Purpose        the clock of a thread is programmed each time that the thread gets a CPU. In a
//                virtual machine this costs some microseconds, for each request of a service that
//                waits for requests. While the events are disabled, there is no such cost.
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
