#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bind/convert.hpp"
#include "interleave/solver.hpp"

namespace nb = nanobind;

namespace nearfar::bind {

namespace {

using namespace nearfar::interleave;

/// (read_share, bandwidth_bytes_per_s, latency_ns)
using PointTuple = std::tuple<double, double, double>;
/// (points, background reads, background writes in bytes/s, capacity_bytes)
using TierTuple = std::tuple<std::vector<PointTuple>, double, double, double>;
/// (near_stall_ns, far_stall_ns, read_bytes, write_bytes, size_bytes)
using SiteTuple = std::tuple<double, double, double, double, double>;
/// (near_stall_ns, far_stall_ns, near_reads, near_writes, far_reads, far_writes in bytes)
using DemandTuple = std::tuple<double, double, double, double, double, double>;

Tier tier_of(const TierTuple& tuple) {
  const auto& [points, reads, writes, capacity] = tuple;
  std::vector<LoadedPoint> made;
  for (const auto& [share, bandwidth, latency] : points)
    made.push_back({share, bandwidth, latency});
  Result<LoadedLatency> latency = LoadedLatency::create(made);
  if (!latency) raise(latency.error());
  return {std::move(*latency), {reads, writes}, capacity};
}

std::vector<Site> sites_of(const std::vector<SiteTuple>& tuples) {
  std::vector<Site> sites;
  for (const auto& [near, far, reads, writes, size] : tuples)
    sites.push_back({near, far, reads, writes, size});
  return sites;
}

Demand demand_of(const DemandTuple& tuple) { return std::make_from_tuple<Demand>(tuple); }

PlacementTime make_model(double base_ns, const TierTuple& near, const TierTuple& far) {
  Result<PlacementTime> made = PlacementTime::create(base_ns, tier_of(near), tier_of(far));
  if (!made) raise(made.error());
  return std::move(*made);
}

nb::dict state_dict(const TierState& state) {
  nb::dict d;
  d["read_share"] = state.read_share;
  d["bandwidth_bytes_per_s"] = state.bandwidth_bytes_per_s;
  d["latency_ns"] = state.latency_ns;
  d["utilization"] = state.utilization;
  return d;
}

nb::dict placement_dict(const PlacementTime& times, const std::vector<unsigned>& near_steps,
                        const Demand& demand, double time_ns, bool exact) {
  nb::dict d;
  d["near_steps"] = near_steps;
  d["time_ns"] = time_ns;
  d["exact"] = exact;
  d["near"] = state_dict(times.near_state(demand, time_ns));
  d["far"] = state_dict(times.far_state(demand, time_ns));
  return d;
}

nb::dict solve_placement(const PlacementTime& times, const std::vector<SiteTuple>& tuples,
                         unsigned steps, std::uint64_t max_nodes, const DemandTuple& fixed) {
  const std::vector<Site> sites = sites_of(tuples);
  const Demand others = demand_of(fixed);
  Solution found = run_unlocked([&] { return solve(times, sites, steps, max_nodes, others); });
  return placement_dict(times, found.near_steps, found.demand, found.time_ns, found.exact);
}

/// None if the placement fits neither the memories nor their bandwidths.
nb::object time_of(const PlacementTime& times, const std::vector<SiteTuple>& tuples,
                   const std::vector<unsigned>& near_steps, unsigned steps,
                   const DemandTuple& fixed) {
  if (near_steps.size() != tuples.size() || steps == 0)
    throw nb::value_error("a placement has a step for each site");
  const std::vector<Site> sites = sites_of(tuples);
  const Demand demand = interleave::demand_of(sites, near_steps, steps, demand_of(fixed));
  const double time_ns = times.time_ns(demand);
  if (!fits(times, sites, near_steps, steps) || !(time_ns < 1e300)) return nb::none();
  return placement_dict(times, near_steps, demand, time_ns, true);
}

} // namespace

void register_interleave(nb::module_& module) {
  const DemandTuple nothing{};
  nb::class_<PlacementTime>(module, "PlacementTime")
      .def(nb::new_(&make_model), nb::arg("base_ns"), nb::arg("near"), nb::arg("far"))
      .def("solve", &solve_placement, nb::arg("sites"), nb::arg("steps"), nb::arg("max_nodes"),
           nb::arg("fixed") = nothing)
      .def("time", &time_of, nb::arg("sites"), nb::arg("near_steps"), nb::arg("steps"),
           nb::arg("fixed") = nothing);
}

} // namespace nearfar::bind
