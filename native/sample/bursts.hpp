// Enables the clock of a run in bursts: for some readings of the rings, and not for the others. The
// distances vary, so that no periodic behavior is always missed.
//
// Purpose        each sample costs its program some microseconds, and so does the clock of a thread
//                each time that the thread gets a CPU. While the clock is disabled, there is no such
//                cost. Within a burst the distance of samples is as short as without bursts, so that
//                streams can be recognized.
// Share          each reading adds the share to a credit. Events are enabled if the credit is
//                larger than a random number between 0 and 1, which costs 1 of it: the mean is the
//                share, and all pauses are shorter than two readings over the share.
// Thread safety  none.
#pragma once

#include <cstdint>

namespace nearfar::sample {

class Bursts {
public:
  /// `share`: fraction of the readings with enabled events. Enabled from now on.
  Bursts(double share, std::uint64_t now_ns)
      : share_(share), credit_(share - 1.0), random_(now_ns), last_ns_(now_ns) {}

  /// At a reading: decides whether the events are enabled until the next one. True if that changes.
  bool advance(std::uint64_t now_ns);
  bool enabled() const { return enabled_; }
  /// Fraction of the time so far with enabled events; 1 before the first reading.
  double enabled_share() const;

private:
  double share_;
  double credit_;
  bool enabled_ = true;
  std::uint64_t random_;
  std::uint64_t last_ns_;
  std::uint64_t enabled_ns_ = 0;
  std::uint64_t disabled_ns_ = 0;
};

} // namespace nearfar::sample
