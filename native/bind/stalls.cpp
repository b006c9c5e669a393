#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bind/convert.hpp"
#include "trace/lives.hpp"
#include "trace/reader.hpp"
#include "trace/stalls.hpp"

namespace nb = nanobind;

namespace nearfar::bind {

namespace {

using namespace nearfar::trace;

/// (latency_ns, line_ns, write_line_ns, walk_ns, page_shift)
using Memory = std::tuple<double, double, double, double, unsigned>;
/// (instruction_ns, window, parallelism, tlb_entries, tlb_ways)
using Core = std::tuple<double, unsigned, unsigned, unsigned, unsigned>;

MemoryCost memory_of(const Memory& m) {
  return {std::get<0>(m), std::get<1>(m), std::get<2>(m), std::get<3>(m), std::get<4>(m)};
}

CoreCost core_of(const Core& c) {
  return {std::get<0>(c), std::get<1>(c), std::get<2>(c), std::get<3>(c), std::get<4>(c)};
}

/// One pass over the trace for all placements; of the blocks of records, one in `every` counts.
Result<std::vector<Cost>> run(const char* path, std::vector<Costs> accounts, std::uint64_t every) {
  Result<Reader> reader = Reader::open(path);
  if (!reader) return reader.error();
  std::vector<std::uint32_t> sites;
  std::uint64_t block = 0;
  for (auto part = reader->next(); !part.empty(); part = reader->next()) {
    if (every > 1)
      for (Costs& account : accounts)
        account.pass_by();
    if (block++ % every != 0) continue;
    const std::vector<Object>& objects = reader->tables().objects;
    for (std::size_t i = sites.size(); i < objects.size(); ++i)
      sites.push_back(objects[i].site);
    for (Costs& account : accounts)
      account.take(part, sites);
  }
  std::vector<Cost> made;
  for (Costs& account : accounts)
    made.push_back(account.finish(every > 1 ? 0 : reader->totals()[Total::instructions],
                                  reader->tables().sites.size()));
  return made;
}

nb::dict cost_dict(const Cost& cost) {
  nb::dict d;
  d["time_ns"] = cost.time_ns;
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

nb::list trace_costs(const char* path, const std::vector<PlacingTuple>& placings,
                     std::uint64_t every) {
  if (every == 0) throw nb::value_error("one block in 0 is none");
  std::vector<Costs> accounts;
  for (const auto& [near, far, core, far_sites] : placings) {
    Result<Costs> made =
        Costs::create({{memory_of(near), memory_of(far)}, core_of(core), far_sites});
    if (!made) raise(made.error());
    accounts.push_back(std::move(*made));
  }
  nb::list list;
  for (const Cost& cost : run_unlocked([&] { return run(path, std::move(accounts), every); }))
    list.append(cost_dict(cost));
  return list;
}

nb::list trace_lives(const char* path, std::size_t parts) {
  if (parts == 0) throw nb::value_error("a run has a part at least");
  Result<Reader> reader = Reader::open(path);
  if (!reader) raise(reader.error());
  std::vector<Life> found;
  {
    nb::gil_scoped_release unlocked;
    while (!reader->next().empty()) {
    }
    found = lives(reader->tables(), reader->records(), parts);
  }
  nb::list list;
  for (const Life& life : found)
    list.append(nb::make_tuple(life.mean_share, life.most_bytes));
  return list;
}

} // namespace

void register_stalls(nb::module_& module) {
  module.def("trace_costs", trace_costs, nb::arg("path"), nb::arg("placings"), nb::arg("every"));
  module.def("trace_lives", trace_lives, nb::arg("path"), nb::arg("parts"));
}

} // namespace nearfar::bind
