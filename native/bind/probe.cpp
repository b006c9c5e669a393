#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind/convert.hpp"
#include "probe/bandwidth.hpp"
#include "probe/latency.hpp"

namespace nb = nanobind;

namespace nearfar::bind {

namespace {

void register_kernels(nb::module_& module) {
  module.def("array_kernels", [] {
    nb::list list;
    for (const kernels::ArrayKernel& k : kernels::array_kernels()) {
      nb::dict d;
      d["name"] = k.name;
      d["loaded_bytes"] = k.loaded_bytes;
      d["stored_bytes"] = k.stored_bytes;
      d["allocates"] = k.allocates;
      list.append(d);
    }
    return list;
  });
}

void register_latency(nb::module_& module) {
  using probe::LatencyProbe;
  nb::class_<LatencyProbe>(module, "LatencyProbe")
      .def(nb::new_([](const char* tier, std::size_t max_region_bytes, int cpu) {
             const tier::Spec spec = parse_tier(tier);
             return run_unlocked([&] { return LatencyProbe::create(spec, max_region_bytes, cpu); });
           }),
           nb::arg("tier"), nb::arg("max_region_bytes"), nb::arg("cpu"))
      .def(
          "prepare",
          [](LatencyProbe& self, std::size_t region_bytes, std::size_t block_bytes,
             std::uint64_t seed, std::size_t warm_steps) {
            run_unlocked([&] { return self.prepare(region_bytes, block_bytes, seed, warm_steps); });
          },
          nb::arg("region_bytes"), nb::arg("block_bytes"), nb::arg("seed"), nb::arg("warm_steps"))
      .def(
          "sample",
          [](LatencyProbe& self, std::uint64_t nanoseconds) {
            const probe::LatencySample s = run_unlocked([&] { return self.sample(nanoseconds); });
            nb::dict d = usage_dict(s.usage);
            d["latency_ns"] = s.latency_ns;
            d["steps"] = s.steps;
            return d;
          },
          nb::arg("nanoseconds"));
}

void register_bandwidth(nb::module_& module) {
  using probe::ArrayBench;
  nb::class_<ArrayBench>(module, "ArrayBench")
      .def(nb::new_([](const char* a, const char* b, const char* c, std::size_t elements,
                       const std::vector<int>& cpus) {
             const std::array<tier::Spec, 3> specs = {parse_tier(a), parse_tier(b), parse_tier(c)};
             return run_unlocked([&] { return ArrayBench::create(specs, elements, cpus); });
           }),
           nb::arg("tier_a"), nb::arg("tier_b"), nb::arg("tier_c"), nb::arg("elements"),
           nb::arg("cpus"))
      .def(
          "repeat",
          [](ArrayBench& self, const char* kernel, const std::vector<int>& cpus) {
            const probe::ArrayRepeat r = run_unlocked([&] { return self.repeat(kernel, cpus); });
            nb::dict d;
            d["seconds"] = r.seconds;
            d["counted_bytes"] = r.counted_bytes;
            d["members"] = members_list(r.members);
            return d;
          },
          nb::arg("kernel"), nb::arg("cpus"))
      .def("worst_error", &ArrayBench::worst_error, nb::call_guard<nb::gil_scoped_release>());
}

} // namespace

void register_probe(nb::module_& module) {
  register_kernels(module);
  register_latency(module);
  register_bandwidth(module);
}

} // namespace nearfar::bind
