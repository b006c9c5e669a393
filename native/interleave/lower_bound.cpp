#include "interleave/lower_bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nearfar::interleave {

namespace {

/// Intervals of the fraction of undecided traffic that goes to near memory.
constexpr int intervals = 16;
constexpr double infinity = std::numeric_limits<double>::infinity();

double traffic(const Site& site) { return site.read_bytes + site.write_bytes; }

} // namespace

LowerBound::LowerBound(const PlacementTime& times, std::span<const Site> sites)
    : times_(times), sites_(sites), traffic_left_(sites.size() + 1) {
  for (std::size_t i = sites.size(); i-- > 0;)
    traffic_left_[i] = traffic_left_[i + 1] + traffic(sites[i]);
}

bool LowerBound::reaches(const Demand& decided, double near_bytes, std::size_t next,
                         double limit_ns) const {
  const double near = decided.near_reads + decided.near_writes;
  const double far = decided.far_reads + decided.far_writes;
  const double left = traffic_left_[next];
  const double room = times_.near().capacity_bytes - near_bytes;
  const int parts = left > 0 ? intervals : 1;
  for (int part = 0; part < parts; ++part) {
    const double least = left * part / parts, most = left * (part + 1) / parts;
    const Latencies at = lowest(near + least, far + left - most, limit_ns);
    if (!std::isfinite(at.near_factor) || !std::isfinite(at.far_factor)) continue;
    const double settled = times_.base_ns() + decided.near_stall_ns * at.near_factor +
                           decided.far_stall_ns * at.far_factor;
    if (settled + stalls_by_traffic(next, at, least, most) >= limit_ns) continue;
    if (settled + stalls_by_size(next, at, room) >= limit_ns) continue;
    return false;
  }
  return true;
}

/// Latencies of a run of `limit_ns` or less, which has at least these bytes on each side.
LowerBound::Latencies LowerBound::lowest(double near_bytes, double far_bytes,
                                         double limit_ns) const {
  const auto factor = [&](const Tier& tier, double bytes) {
    const double rate = bytes * 1e9 / limit_ns + tier.background.reads + tier.background.writes;
    if (bytes > 0 && rate > tier.latency.highest_peak()) return infinity;
    return tier.latency.lowest_latency_ns(rate) / tier.latency.idle_ns();
  };
  return {factor(times_.near(), near_bytes), factor(times_.far(), far_bytes)};
}

/// Least stalls of the sites from `next` on, of which `least` to `most` bytes of traffic go near:
/// fractions of sites, those that gain most a byte first.
double LowerBound::stalls_by_traffic(std::size_t next, Latencies at, double least,
                                     double most) const {
  const auto change = [&](std::size_t i) {
    return sites_[i].near_stall_ns * at.near_factor - sites_[i].far_stall_ns * at.far_factor;
  };
  double stalls = 0;
  order_.clear();
  for (std::size_t i = next; i < sites_.size(); ++i) {
    stalls += sites_[i].far_stall_ns * at.far_factor;
    if (traffic(sites_[i]) > 0)
      order_.push_back(i);
    else
      stalls += std::min(change(i), 0.0);
  }
  std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
    return change(a) * traffic(sites_[b]) < change(b) * traffic(sites_[a]);
  });
  double near = 0;
  for (const std::size_t i : order_) {
    const double delta = change(i), bytes = traffic(sites_[i]);
    const double end = delta < 0 ? most : least;
    const double taken = std::clamp((end - near) / bytes, 0.0, 1.0);
    stalls += delta * taken;
    near += bytes * taken;
  }
  return stalls;
}

/// Least stalls of the sites from `next` on if `room` bytes of them are near, whatever their traffic.
double LowerBound::stalls_by_size(std::size_t next, Latencies at, double room) const {
  const auto change = [&](std::size_t i) {
    return sites_[i].near_stall_ns * at.near_factor - sites_[i].far_stall_ns * at.far_factor;
  };
  double stalls = 0;
  order_.clear();
  for (std::size_t i = next; i < sites_.size(); ++i) {
    stalls += sites_[i].far_stall_ns * at.far_factor;
    if (change(i) >= 0) continue;
    if (sites_[i].size_bytes > 0)
      order_.push_back(i);
    else
      stalls += change(i);
  }
  std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
    return change(a) * sites_[b].size_bytes < change(b) * sites_[a].size_bytes;
  });
  for (const std::size_t i : order_) {
    const double taken = std::clamp(room / sites_[i].size_bytes, 0.0, 1.0);
    stalls += change(i) * taken;
    room -= sites_[i].size_bytes * taken;
  }
  return stalls;
}

} // namespace nearfar::interleave
