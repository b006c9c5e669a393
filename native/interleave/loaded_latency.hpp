// Latency of a memory under load, by the fraction of reads: measured curves.
//
// Purpose        the latency that a placement's own traffic causes.
// Between curves linear in the fraction of reads, at equal fractions of the peak bandwidth; outside
//                of the measured fractions the nearest curve holds.
// Beyond an end  a bandwidth above the peak is refused, never extrapolated.
// Thread safety  values; lookups are const.
#pragma once

#include <span>
#include <vector>

#include "base/result.hpp"

namespace nearfar::interleave {

struct LoadedPoint {
  double read_share = 1;            ///< of the bytes, 0 to 1
  double bandwidth_bytes_per_s = 0; ///< reads and writes together
  double latency_ns = 0;
};

class LoadedLatency {
public:
  /// Points in any order. Of each fraction of reads, a point is left out if another one has at
  /// least its bandwidth at no more latency: overloaded memories lose bandwidth.
  /// Errors: bad_input (no points, or numbers that are not positive and finite).
  static Result<LoadedLatency> create(std::span<const LoadedPoint> points);

  /// The highest bandwidth that was reached.
  double peak(double read_share) const;
  /// The highest of all fractions of reads.
  double highest_peak() const { return highest_peak_; }
  /// At the lowest load of the highest fraction of reads.
  double idle_ns() const { return idle_ns_; }
  /// Requires bandwidth <= peak(read_share), but for rounding.
  double latency_ns(double read_share, double bandwidth) const;
  /// Lower bound of the latency for all fractions of reads, at this bandwidth or above.
  double lowest_latency_ns(double bandwidth) const;

private:
  struct Step {
    double utilization = 0; ///< of the peak
    double latency_ns = 0;
  };
  struct Curve {
    double read_share = 1;
    double peak = 0;
    std::vector<Step> steps; ///< by rising utilization; the last one is at 1
    double at(double utilization) const;
  };
  /// The curves on both sides of a fraction of reads, and the weight of the second.
  struct Place {
    const Curve* low;
    const Curve* high;
    double weight;
  };

  static Curve make_curve(std::span<const LoadedPoint> points);
  Place place(double read_share) const;

  std::vector<Curve> curves_; ///< by rising fraction of reads
  double highest_peak_ = 0;
  double idle_ns_ = 0;
};

} // namespace nearfar::interleave
