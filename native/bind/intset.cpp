#include "bench/intset.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind/convert.hpp"

namespace nb = nanobind;

namespace nearfar::bind {

namespace {

constexpr std::string_view media[] = {"pmem", "unflushed",   "dram",
                                      "pmdk", "pmdk_atomic", "pmdk_rp"};

} // namespace

void register_intset(nb::module_& module) {
  using bench::IntsetBench;
  module.def("intset_structures", &bench::intset_structures);
  nb::class_<IntsetBench>(module, "IntsetBench")
      .def(nb::new_([](const char* structure, const char* medium, std::uint64_t entries,
                       unsigned update_percent, const char* tier, int cpu, std::uint64_t seed) {
             bench::IntsetPlan plan;
             plan.structure = structure;
             plan.medium = by_name<bench::IntsetMedium>(medium, media);
             plan.entries = entries;
             plan.update_percent = update_percent;
             plan.tier = parse_tier(tier);
             plan.cpu = cpu;
             plan.seed = seed;
             return run_unlocked([&] { return IntsetBench::create(plan); });
           }),
           nb::arg("structure"), nb::arg("medium"), nb::arg("entries"), nb::arg("update_percent"),
           nb::arg("tier"), nb::arg("cpu"), nb::arg("seed"))
      .def(
          "run",
          [](IntsetBench& self, std::uint64_t budget_ns) {
            const auto run = run_unlocked([&] { return self.run(budget_ns); });
            nb::dict d;
            d["operations"] = run.operations;
            d["changed"] = run.changed;
            d["seconds"] = run.seconds;
            d["fences"] = run.counted.fences;
            d["lines"] = run.counted.lines;
            d["members"] = members_list(run.members);
            return d;
          },
          nb::arg("budget_ns"));
}

} // namespace nearfar::bind
