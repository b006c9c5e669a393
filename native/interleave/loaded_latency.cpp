#include "interleave/loaded_latency.hpp"

#include <algorithm>
#include <cmath>

namespace nearfar::interleave {

namespace {

bool is_valid(const LoadedPoint& point) {
  return point.read_share >= 0 && point.read_share <= 1 && point.bandwidth_bytes_per_s >= 0 &&
         std::isfinite(point.bandwidth_bytes_per_s) && point.latency_ns > 0 &&
         std::isfinite(point.latency_ns);
}

} // namespace

Result<LoadedLatency> LoadedLatency::create(std::span<const LoadedPoint> points) {
  if (points.empty() || !std::all_of(points.begin(), points.end(), is_valid))
    return Error::make(Errc::bad_input, "a loaded latency curve has an invalid point, or none")
        .try_next("give positive latencies, bandwidths of 0 or more, and read shares of 0 to 1");
  std::vector<LoadedPoint> sorted(points.begin(), points.end());
  std::sort(sorted.begin(), sorted.end(), [](const LoadedPoint& a, const LoadedPoint& b) {
    if (a.read_share != b.read_share) return a.read_share < b.read_share;
    if (a.bandwidth_bytes_per_s != b.bandwidth_bytes_per_s)
      return a.bandwidth_bytes_per_s < b.bandwidth_bytes_per_s;
    return a.latency_ns < b.latency_ns;
  });
  LoadedLatency made;
  for (std::size_t begin = 0; begin < sorted.size();) {
    std::size_t end = begin;
    while (end < sorted.size() && sorted[end].read_share == sorted[begin].read_share)
      ++end;
    if (sorted[end - 1].bandwidth_bytes_per_s > 0)
      made.curves_.push_back(make_curve(std::span(sorted).subspan(begin, end - begin)));
    begin = end;
  }
  if (made.curves_.empty())
    return Error::make(Errc::bad_input, "a loaded latency curve has no point with traffic")
        .try_next("give at least one point with a bandwidth above 0");
  for (const Curve& curve : made.curves_)
    made.highest_peak_ = std::max(made.highest_peak_, curve.peak);
  made.idle_ns_ = made.curves_.back().steps.front().latency_ns;
  return made;
}

LoadedLatency::Curve LoadedLatency::make_curve(std::span<const LoadedPoint> points) {
  Curve curve;
  curve.read_share = points.back().read_share;
  curve.peak = points.back().bandwidth_bytes_per_s;
  for (auto point = points.rbegin(); point != points.rend(); ++point) {
    if (!curve.steps.empty() && point->latency_ns >= curve.steps.back().latency_ns) continue;
    const double utilization = point->bandwidth_bytes_per_s / curve.peak;
    if (!curve.steps.empty() && utilization == curve.steps.back().utilization)
      curve.steps.back().latency_ns = point->latency_ns;
    else
      curve.steps.push_back({utilization, point->latency_ns});
  }
  std::reverse(curve.steps.begin(), curve.steps.end());
  return curve;
}

double LoadedLatency::Curve::at(double utilization) const {
  if (utilization <= steps.front().utilization) return steps.front().latency_ns;
  if (utilization >= 1) return steps.back().latency_ns;
  const auto above =
      std::upper_bound(steps.begin(), steps.end(), utilization,
                       [](double value, const Step& step) { return value < step.utilization; });
  const Step &high = *above, &low = *(above - 1);
  return low.latency_ns + (high.latency_ns - low.latency_ns) * (utilization - low.utilization) /
                              (high.utilization - low.utilization);
}

LoadedLatency::Place LoadedLatency::place(double read_share) const {
  const auto above = std::find_if(curves_.begin(), curves_.end(), [&](const Curve& curve) {
    return curve.read_share >= read_share;
  });
  if (above == curves_.end()) return {&curves_.back(), &curves_.back(), 0};
  if (above == curves_.begin()) return {&*above, &*above, 0};
  const Curve& low = *(above - 1);
  return {&low, &*above, (read_share - low.read_share) / (above->read_share - low.read_share)};
}

double LoadedLatency::peak(double read_share) const {
  const Place at = place(read_share);
  return at.low->peak + (at.high->peak - at.low->peak) * at.weight;
}

double LoadedLatency::latency_ns(double read_share, double bandwidth) const {
  const Place at = place(read_share);
  const double utilization =
      bandwidth / (at.low->peak + (at.high->peak - at.low->peak) * at.weight);
  const double low = at.low->at(utilization);
  return at.weight == 0 ? low : low + (at.high->at(utilization) - low) * at.weight;
}

double LoadedLatency::lowest_latency_ns(double bandwidth) const {
  const double utilization = bandwidth / highest_peak_;
  double lowest = curves_.front().at(utilization);
  for (const Curve& curve : curves_)
    lowest = std::min(lowest, curve.at(utilization));
  return lowest;
}

} // namespace nearfar::interleave
