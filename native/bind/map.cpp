#include "bench/map.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bench/counted_region.hpp"
#include "bench/pmdk_primitives.hpp"
#include "bench/pool_arrays.hpp"
#include "bind/convert.hpp"

namespace nb = nanobind;

namespace nearfar::bind {

namespace {

constexpr std::string_view types[] = {"map", "dram", "map_atomic", "map_tx", "map_rp"};
constexpr std::string_view operations[] = {"insert", "get", "remove"};
constexpr std::string_view primitives[] = {"persist",   "tx_1_range",     "tx_8_ranges",
                                           "tx_alloc",  "publish_1_word", "alloc_publish",
                                           "alloc_free"};
constexpr std::string_view passes[] = {"whole", "each", "dependent", "batched"};

nb::dict run_dict(const bench::MapRun& run) {
  nb::dict percentiles;
  for (std::size_t i = 0; i < run.percentiles_ns.size(); ++i)
    percentiles[nb::float_(bench::map_percentiles[i])] = run.percentiles_ns[i];
  nb::dict d;
  d["seconds"] = run.seconds;
  d["mean_ns"] = run.mean_ns;
  d["min_ns"] = run.min_ns;
  d["largest_ns"] = run.largest_ns;
  d["percentiles_ns"] = percentiles;
  d["worst_cpu_ns"] = run.worst_cpu_ns;
  d["fences"] = run.counted.fences;
  d["lines"] = run.counted.lines;
  d["members"] = members_list(run.members);
  return d;
}

/// {name: (value, share of the time it was counted)}
nb::dict counted_dict(const std::vector<bench::Counted>& events) {
  nb::dict d;
  for (const bench::Counted& event : events)
    d[nb::str(event.name.c_str())] = nb::make_tuple(event.value, event.share);
  return d;
}

void register_primitives(nb::module_& module) {
  using bench::PrimitiveBench;
  nb::class_<PrimitiveBench>(module, "PrimitiveBench")
      .def(nb::new_([](const char* tier, int cpu) {
             const tier::Spec place = parse_tier(tier);
             return run_unlocked([&] { return PrimitiveBench::create(place, cpu); });
           }),
           nb::arg("tier"), nb::arg("cpu"))
      .def(
          "run",
          [](PrimitiveBench& self, const char* name, std::uint64_t count) {
            const auto primitive = by_name<bench::Primitive>(name, primitives);
            const auto run = run_unlocked([&] { return self.run(primitive, count); });
            nb::dict d;
            d["seconds"] = run.seconds;
            d["fences"] = run.counted.fences;
            d["lines"] = run.counted.lines;
            d["members"] = members_list(run.members);
            return d;
          },
          nb::arg("primitive"), nb::arg("count"));
}

/// As ArrayBench in probe.cpp, over the objects of a pool.
void register_pool_arrays(nb::module_& module) {
  using bench::PoolArrays;
  nb::class_<PoolArrays>(module, "PoolArrayBench")
      .def(nb::new_([](const char* tier, std::size_t elements, const std::vector<int>& cpus) {
             const tier::Spec place = parse_tier(tier);
             return run_unlocked([&] { return PoolArrays::create(place, elements, cpus); });
           }),
           nb::arg("tier"), nb::arg("elements"), nb::arg("cpus"))
      .def(
          "repeat",
          [](PoolArrays& self, const char* kernel, const std::vector<int>& cpus) {
            return array_dict(run_unlocked([&] { return self.bench.repeat(kernel, cpus); }));
          },
          nb::arg("kernel"), nb::arg("cpus"))
      .def("worst_error", [](PoolArrays& self) { return self.bench.worst_error(); });
}

} // namespace

void register_map(nb::module_& module) {
  register_pool_arrays(module);
  register_primitives(module);
  using bench::MapBench;
  nb::class_<MapBench>(module, "MapBench")
      .def(nb::new_([](const char* type, const char* operation, std::uint64_t count,
                       std::uint64_t value_bytes, bool alloc, const char* tier,
                       const std::vector<int>& cpus, std::uint32_t seed,
                       std::optional<int> writer_cpu) {
             bench::MapPlan plan;
             plan.writer_cpu = writer_cpu;
             plan.type = by_name<bench::MapType>(type, types);
             plan.operation = by_name<bench::MapOperation>(operation, operations);
             plan.operations = count;
             plan.value_bytes = value_bytes;
             plan.alloc = alloc;
             plan.tier = parse_tier(tier);
             plan.cpus = cpus;
             plan.seed = seed;
             return run_unlocked([&] { return MapBench::create(plan); });
           }),
           nb::arg("kind"), nb::arg("operation"), nb::arg("operations"), nb::arg("value_bytes"),
           nb::arg("alloc"), nb::arg("tier"), nb::arg("cpus"), nb::arg("seed"),
           nb::arg("writer_cpu") = nb::none())
      .def("load_seconds", &MapBench::load_seconds)
      .def("pool_bytes", [](const MapBench& self) { return self.pool().size(); })
      .def(
          "run",
          [](MapBench& self, const char* pass) {
            const auto chosen = by_name<bench::MapPass>(pass, passes);
            return run_dict(run_unlocked([&] { return self.run(chosen); }));
          },
          nb::arg("pass_"))
      .def(
          "run_counted",
          [](MapBench& self, const bench::CountedRegion::Names& groups, std::size_t threads) {
            bench::CountedRegion region =
                run_unlocked([&] { return bench::CountedRegion::create(groups, threads); });
            nb::dict d =
                run_dict(run_unlocked([&] { return self.run(bench::MapPass::whole, &region); }));
            d["counted"] = counted_dict(run_unlocked([&] { return region.counted(); }));
            return d;
          },
          nb::arg("groups"), nb::arg("threads"));
  module.def(
      "check_counters",
      [](const std::vector<std::string>& names) {
        run_unlocked([&] { return bench::CountedRegion::create({names}, 1); });
      },
      nb::arg("names"));
}

} // namespace nearfar::bind
