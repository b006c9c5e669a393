#include "interleave/placement_time.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nearfar::interleave {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double precision = 1e-12; // relative, of a time
constexpr double rounding = 1e-12;  // relative, of a bandwidth at the peak
constexpr int max_steps = 200;

bool is_amount(double value) { return value >= 0 && std::isfinite(value); }

TierState state_of(const Tier& tier, double reads, double writes, double time_ns) {
  const double per_s = 1e9 / time_ns;
  const double read_rate = reads * per_s + tier.background.reads;
  const double rate = read_rate + writes * per_s + tier.background.writes;
  TierState state;
  state.read_share = rate > 0 ? read_rate / rate : 1;
  state.bandwidth_bytes_per_s = rate;
  state.utilization = rate / tier.latency.peak(state.read_share);
  state.latency_ns =
      state.utilization > 1 + rounding ? infinity : tier.latency.latency_ns(state.read_share, rate);
  return state;
}

Status check_background(const Tier& tier, const char* name) {
  const Background& load = tier.background;
  if (!is_amount(load.reads) || !is_amount(load.writes))
    return Error::make(Errc::bad_input, "invalid background load of %s memory", name)
        .try_next("give bandwidths of 0 or more");
  const double rate = load.reads + load.writes;
  if (rate == 0) return Done{};
  const double peak = tier.latency.peak(load.reads / rate);
  if (rate < peak) return Done{};
  return Error::make(Errc::bad_input,
                     "a background load of %.3g GB/s leaves no bandwidth in %s memory, whose peak "
                     "is %.3g GB/s",
                     rate / 1e9, name, peak / 1e9)
      .try_next("give a lower background load");
}

} // namespace

void Demand::add(const Site& site, double near) {
  near_stall_ns += near * site.near_stall_ns;
  far_stall_ns += (1 - near) * site.far_stall_ns;
  near_reads += near * site.read_bytes;
  near_writes += near * site.write_bytes;
  far_reads += (1 - near) * site.read_bytes;
  far_writes += (1 - near) * site.write_bytes;
}

Result<PlacementTime> PlacementTime::create(double base_ns, Tier near, Tier far) {
  if (!(base_ns > 0) || !std::isfinite(base_ns))
    return Error::make(Errc::bad_input, "the time without stalls must be positive")
        .try_next("give the time that the program computes");
  if (Status checked = check_background(near, "near"); !checked) return checked.error();
  if (Status checked = check_background(far, "far"); !checked) return checked.error();
  return PlacementTime(base_ns, std::move(near), std::move(far));
}

double PlacementTime::implied_ns(const Demand& demand, double time_ns) const {
  double implied = base_ns_;
  if (demand.near_reads + demand.near_writes > 0 || demand.near_stall_ns > 0)
    implied +=
        demand.near_stall_ns * near_state(demand, time_ns).latency_ns / near_.latency.idle_ns();
  if (demand.far_reads + demand.far_writes > 0 || demand.far_stall_ns > 0)
    implied += demand.far_stall_ns * far_state(demand, time_ns).latency_ns / far_.latency.idle_ns();
  return std::isnan(implied) ? infinity : implied; // no stalls at infinite latency: above the peak
}

/// Alternates bisection and secants, between a time that is too short and one that is long enough.
double PlacementTime::time_ns(const Demand& demand) const {
  double low = base_ns_, high = base_ns_;
  double over = implied_ns(demand, low) - low; // > 0: the run takes longer
  if (over <= 0) return low;
  double under = over;
  for (int doubled = 0; under > 0; ++doubled) {
    if (doubled == max_steps) return infinity;
    low = high;
    over = under;
    high *= 2;
    under = implied_ns(demand, high) - high;
  }
  for (int step = 0; step < max_steps && high - low > precision * high; ++step) {
    double middle = low + (high - low) / 2;
    if (step % 3 != 2 && std::isfinite(over)) {
      const double crossing = low + (high - low) * over / (over - under);
      // a little beyond the crossing on alternate sides, so that both ends move
      const double beyond = (high - low) * 1e-3 * (step % 3 == 0 ? 1 : -1);
      const double tried = crossing + beyond;
      if (tried > low && tried < high) middle = tried;
    }
    const double difference = implied_ns(demand, middle) - middle;
    if (difference > 0) {
      low = middle;
      over = difference;
    } else {
      high = middle;
      under = difference;
    }
  }
  return high;
}

TierState PlacementTime::near_state(const Demand& demand, double time_ns) const {
  return state_of(near_, demand.near_reads, demand.near_writes, time_ns);
}

TierState PlacementTime::far_state(const Demand& demand, double time_ns) const {
  return state_of(far_, demand.far_reads, demand.far_writes, time_ns);
}

} // namespace nearfar::interleave
