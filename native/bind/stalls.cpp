#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bind/convert.hpp"
#include "bind/trace_stats.hpp"
#include "sim/policy_evaluation.hpp"
#include "trace/live_bytes.hpp"
#include "trace/stalls.hpp"
#include "trace/thinned_trace.hpp"

namespace nb = nanobind;

namespace nearfar::bind {

namespace {

using namespace nearfar::trace;

/// (latency_ns, read_ns_per_line, write_ns_per_line, walk_ns, overlapped_walk_ns, page_shift)
using Memory = std::tuple<double, double, double, double, double, unsigned>;
/// (instruction_ns, rob_entries, fill_buffers, tlb_entries, tlb_ways, chained_fraction,
/// serial_ns_per_instruction)
using Core = std::tuple<double, unsigned, unsigned, unsigned, unsigned, double, double>;

MemoryCost memory_of(const Memory& m) {
  return {std::get<0>(m), std::get<1>(m), std::get<2>(m),
          std::get<3>(m), std::get<4>(m), std::get<5>(m)};
}

CoreCost core_of(const Core& c) {
  return {std::get<0>(c), std::get<1>(c), std::get<2>(c), std::get<3>(c),
          std::get<4>(c), std::get<5>(c), std::get<6>(c)};
}

nb::dict cost_dict(const Cost& cost) {
  nb::dict d;
  d["time_ns"] = cost.time_ns;
  d["cpu_ns"] = cost.cpu_ns;
  d["stall_ns"] = cost.stall_ns;
  d["instructions"] = cost.instructions;
  nb::list sites;
  for (const SiteCost& site : cost.sites)
    sites.append(nb::make_tuple(site.reads, site.prefetches, site.writes, site.dependent,
                                site.walks, site.stall_ns));
  d["sites"] = sites;
  return d;
}

/// A placement: near, far, core, and by site 1 for far.
using PlacingTuple = std::tuple<Memory, Memory, Core, std::vector<std::uint8_t>>;

SitePlacement placing_of(const PlacingTuple& tuple) {
  const auto& [near, far, core, far_sites] = tuple;
  return {{memory_of(near), memory_of(far)}, core_of(core), far_sites};
}

ThinnedTrace read_sampled(const char* path, std::uint64_t max_records) {
  return run_unlocked([&] { return ThinnedTrace::read(path, max_records); });
}

nb::list sampled_costs(const ThinnedTrace& self, const std::vector<PlacingTuple>& placings) {
  std::vector<StallModel> accounts;
  for (const PlacingTuple& placing : placings) {
    Result<StallModel> made = StallModel::create(placing_of(placing));
    if (!made) raise(made.error());
    accounts.push_back(std::move(*made));
  }
  std::vector<Cost> made;
  {
    nb::gil_scoped_release unlocked;
    made = self.costs(std::move(accounts));
  }
  nb::list list;
  for (const Cost& cost : made)
    list.append(cost_dict(cost));
  return list;
}

nb::list site_live_bytes(const ThinnedTrace& self, std::size_t parts) {
  if (parts == 0) throw nb::value_error("a run has a part at least");
  nb::list list;
  for (const LiveBytes& site : live_bytes(self.reader().tables(), self.reader().position(), parts))
    list.append(nb::make_tuple(site.mean_share, site.max_bytes));
  return list;
}

/// A page policy: rule, bytes of near memory, weights near and far; near, far, core.
using PolicyTuple =
    std::tuple<std::string, std::uint64_t, std::uint64_t, std::uint64_t, Memory, Memory, Core>;

nb::list evaluate_policies(const ThinnedTrace& self, const std::vector<PolicyTuple>& policies,
                           double instruction_ps, const TouchLog& touches) {
  std::vector<sim::PolicySetup> wanted;
  for (const auto& [rule, near_bytes, near_weight, far_weight, near, far, core] : policies) {
    sim::PolicySetup one;
    one.plan.rule = by_name<sim::PlacementRule>(rule, sim::placement_rule_names);
    one.plan.near_bytes = near_bytes;
    one.plan.near_weight = near_weight;
    one.plan.far_weight = far_weight;
    one.placing = placing_of({near, far, core, {}});
    wanted.push_back(std::move(one));
  }
  nb::list list;
  for (const sim::PolicyOutcome& one : run_unlocked(
           [&] { return sim::evaluate_policies(self, wanted, instruction_ps, touches); })) {
    nb::dict d = cost_dict(one.cost);
    d["moved_pages"] = one.moved_pages;
    d["near_lines"] = one.near_lines;
    d["far_lines"] = one.far_lines;
    d["far_written"] = one.far_written;
    d["far_pages"] = one.far_pages;
    list.append(d);
  }
  return list;
}

} // namespace

void register_stalls(nb::module_& module) {
  nb::class_<ThinnedTrace>(module, "TraceSample")
      .def(nb::new_(&read_sampled), nb::arg("path"), nb::arg("max_records"))
      .def("stats",
           [](const ThinnedTrace& self) { return trace_stats_dict(self.reader(), self.counts()); })
      .def_prop_ro("every", &ThinnedTrace::every)
      .def_prop_ro("touched", [](const ThinnedTrace& self) { return touched_dict(self.touched()); })
      .def("costs", &sampled_costs, nb::arg("placings"))
      .def("live_bytes", &site_live_bytes, nb::arg("parts"))
      .def("evaluate_policies", &evaluate_policies, nb::arg("policies"), nb::arg("instruction_ps"),
           nb::arg("touches"));
}

} // namespace nearfar::bind
