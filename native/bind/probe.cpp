#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind/convert.hpp"
#include "probe/access.hpp"
#include "probe/bandwidth.hpp"
#include "probe/latency.hpp"
#include "probe/loaded.hpp"
#include "probe/persistence.hpp"

namespace nb = nanobind;

namespace nearfar::bind {

namespace {

nb::dict latency_dict(const probe::LatencySample& s) {
  nb::dict d = usage_dict(s.usage);
  d["latency_ns"] = s.latency_ns;
  d["steps"] = s.steps;
  return d;
}

/// {share: ns} for the shares that are read off a tail.
nb::dict percentiles_ns(const Histogram& ticks, double tick_ns) {
  nb::dict d;
  for (const double share : {0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999})
    d[nb::float_(share)] = static_cast<double>(ticks.percentile(share)) * tick_ns;
  return d;
}

void register_kernels(nb::module_& module) {
  module.def("array_kernels", [] {
    nb::list list;
    for (const kernels::ArrayKernel& k : kernels::array_kernels()) {
      nb::dict d;
      d["name"] = k.name;
      d["loaded_bytes"] = k.loaded_bytes;
      d["stored_bytes"] = k.stored_bytes;
      d["allocates"] = k.allocates;
      d["skipped_by_probe"] = k.skipped_by_probe;
      list.append(d);
    }
    return list;
  });
}

constexpr std::string_view spacings[] = {"integers", "registers", "empty"};

void register_latency(nb::module_& module) {
  using probe::LatencyProbe;
  nb::class_<LatencyProbe>(module, "LatencyProbe")
      .def(nb::new_([](const char* tier, std::size_t max_region_bytes, int cpu) {
             const tier::Spec spec = parse_tier(tier);
             return run_unlocked([&] { return LatencyProbe::create(spec, max_region_bytes, cpu); });
           }),
           nb::arg("tier"), nb::arg("max_region_bytes"), nb::arg("cpu"))
      .def("touch_ns", &LatencyProbe::touch_ns)
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
            return latency_dict(run_unlocked([&] { return self.sample(nanoseconds); }));
          },
          nb::arg("nanoseconds"))
      .def(
          "sample_chains",
          [](LatencyProbe& self, std::size_t chains, std::uint64_t nanoseconds) {
            return latency_dict(
                run_unlocked([&] { return self.sample_chains(chains, nanoseconds); }));
          },
          nb::arg("chains"), nb::arg("nanoseconds"))
      .def(
          "sample_spaced",
          [](LatencyProbe& self, const char* spacing, std::size_t instructions,
             std::uint64_t nanoseconds) {
            const auto kind = by_name<kernels::Spacing>(spacing, spacings);
            return latency_dict(
                run_unlocked([&] { return self.sample_spaced(kind, instructions, nanoseconds); }));
          },
          nb::arg("spacing"), nb::arg("instructions"), nb::arg("nanoseconds"))
      .def(
          "time_each",
          [](LatencyProbe& self, std::size_t steps) {
            const probe::TimedLoads t = run_unlocked([&] { return self.time_each(steps); });
            nb::dict d = usage_dict(t.usage);
            d["percentiles_ns"] = percentiles_ns(t.ticks, t.tick_ns);
            d["largest_ns"] = static_cast<double>(t.ticks.largest()) * t.tick_ns;
            d["timer_ns"] = static_cast<double>(t.own_ticks) * t.tick_ns;
            return d;
          },
          nb::arg("steps"));
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
            return array_dict(run_unlocked([&] { return self.repeat(kernel, cpus); }));
          },
          nb::arg("kernel"), nb::arg("cpus"))
      .def("worst_error", &ArrayBench::worst_error, nb::call_guard<nb::gil_scoped_release>());
}

constexpr std::string_view orders[] = {"sequential", "strided", "random"};

probe::AccessPattern pattern_of(const char* order, std::size_t block_bytes,
                                std::size_t stride_bytes, unsigned reads, unsigned writes,
                                bool nontemporal) {
  return {by_name<kernels::Order>(order, orders),
          block_bytes,
          stride_bytes,
          reads,
          writes,
          nontemporal};
}

void register_access(nb::module_& module) {
  using probe::AccessProbe;
  nb::class_<AccessProbe>(module, "AccessProbe")
      .def(nb::new_([](const char* tier, std::size_t size_bytes, const std::vector<int>& cpus) {
             const tier::Spec spec = parse_tier(tier);
             return run_unlocked([&] { return AccessProbe::create(spec, size_bytes, cpus); });
           }),
           nb::arg("tier"), nb::arg("size_bytes"), nb::arg("cpus"))
      .def(
          "run",
          [](AccessProbe& self, const char* order, std::size_t block_bytes,
             std::size_t stride_bytes, unsigned reads, unsigned writes, bool nontemporal,
             const std::vector<int>& cpus, std::uint64_t nanoseconds, std::uint64_t seed) {
            const probe::AccessPattern pattern =
                pattern_of(order, block_bytes, stride_bytes, reads, writes, nontemporal);
            const probe::AccessRun r =
                run_unlocked([&] { return self.run(pattern, cpus, nanoseconds, seed); });
            nb::dict d;
            d["seconds"] = r.seconds;
            d["counted_bytes"] = r.bytes;
            d["members"] = members_list(r.members);
            return d;
          },
          nb::arg("order"), nb::arg("block_bytes"), nb::arg("stride_bytes"), nb::arg("reads"),
          nb::arg("writes"), nb::arg("nontemporal"), nb::arg("cpus"), nb::arg("nanoseconds"),
          nb::arg("seed"));
}

void register_loaded(nb::module_& module) {
  using probe::LoadedProbe;
  nb::class_<LoadedProbe>(module, "LoadedProbe")
      .def(nb::new_([](const char* tier, std::size_t chase_bytes, std::size_t traffic_bytes,
                       int chaser_cpu, const std::vector<int>& traffic_cpus, std::uint64_t seed) {
             const tier::Spec spec = parse_tier(tier);
             return run_unlocked([&] {
               return LoadedProbe::create(spec, chase_bytes, traffic_bytes, chaser_cpu,
                                          traffic_cpus, seed);
             });
           }),
           nb::arg("tier"), nb::arg("chase_bytes"), nb::arg("traffic_bytes"), nb::arg("chaser_cpu"),
           nb::arg("traffic_cpus"), nb::arg("seed"))
      .def(
          "run",
          [](LoadedProbe& self, const char* order, unsigned reads, unsigned writes,
             double offered_bytes_per_s, std::uint64_t nanoseconds, std::uint64_t seed) {
            // Blocks of 1 KiB: small enough to be paced evenly, large enough to run at full speed.
            const probe::AccessPattern pattern = pattern_of(order, 1024, 0, reads, writes, false);
            const probe::LoadedSample s = run_unlocked(
                [&] { return self.run(pattern, offered_bytes_per_s, nanoseconds, seed); });
            nb::dict d;
            d["latency_ns"] = s.latency_ns;
            d["traffic_bytes_per_s"] = s.traffic_bytes_per_s;
            d["chaser_bytes_per_s"] = s.chaser_bytes_per_s;
            d["members"] = members_list(s.members);
            return d;
          },
          nb::arg("order"), nb::arg("reads"), nb::arg("writes"), nb::arg("offered_bytes_per_s"),
          nb::arg("nanoseconds"), nb::arg("seed"));
}

constexpr std::string_view persists[] = {"ntstore", "clwb", "clflushopt", "clflush", "movdir64b"};

nb::dict persist_dict(const probe::PersistSample& s) {
  nb::dict d = usage_dict(s.usage);
  d["fence_ns"] = s.fence_ns;
  d["fences"] = s.fences;
  return d;
}

void register_persistence(nb::module_& module) {
  using probe::PersistenceProbe;
  module.def("persist_instructions", [] {
    nb::list names;
    for (std::size_t i = 0; i < std::size(persists); ++i)
      if (os::can_persist(static_cast<os::Persist>(i)))
        names.append(nb::str(persists[i].data(), persists[i].size()));
    return names;
  });
  nb::class_<PersistenceProbe>(module, "PersistenceProbe")
      .def(nb::new_([](const char* tier, std::size_t size_bytes, int cpu) {
             const tier::Spec spec = parse_tier(tier);
             return run_unlocked([&] { return PersistenceProbe::create(spec, size_bytes, cpu); });
           }),
           nb::arg("tier"), nb::arg("size_bytes"), nb::arg("cpu"))
      .def(
          "sample",
          [](PersistenceProbe& self, const char* how, std::size_t block_bytes,
             std::size_t blocks_per_fence, std::uint64_t nanoseconds) {
            const auto method = by_name<os::Persist>(how, persists);
            return persist_dict(run_unlocked(
                [&] { return self.sample(method, block_bytes, blocks_per_fence, nanoseconds); }));
          },
          nb::arg("how"), nb::arg("block_bytes"), nb::arg("blocks_per_fence"),
          nb::arg("nanoseconds"))
      .def(
          "sample_msync",
          [](PersistenceProbe& self, std::size_t block_bytes, std::uint64_t nanoseconds) {
            return persist_dict(
                run_unlocked([&] { return self.sample_msync(block_bytes, nanoseconds); }));
          },
          nb::arg("block_bytes"), nb::arg("nanoseconds"))
      .def(
          "overwrite",
          [](PersistenceProbe& self, const char* how, std::size_t block_bytes, std::size_t writes) {
            const auto method = by_name<os::Persist>(how, persists);
            const probe::OverwriteRun r =
                run_unlocked([&] { return self.overwrite(method, block_bytes, writes); });
            nb::dict d = usage_dict(r.usage);
            d["percentiles_ns"] = percentiles_ns(r.ticks, r.tick_ns);
            d["largest_ns"] = static_cast<double>(r.ticks.largest()) * r.tick_ns;
            d["stalls"] = r.stalls;
            d["stall_ns"] = r.stall_ns;
            d["writes_between"] = r.writes_between;
            return d;
          },
          nb::arg("how"), nb::arg("block_bytes"), nb::arg("writes"));
}

} // namespace

void register_probe(nb::module_& module) {
  register_kernels(module);
  register_latency(module);
  register_bandwidth(module);
  register_access(module);
  register_loaded(module);
  register_persistence(module);
}

} // namespace nearfar::bind
