// The benchmarks of the bench layer in which near and far memory work at once.
#include <nanobind/stl/vector.h>

#include "bench/compete.hpp"
#include "bench/pipeline.hpp"
#include "bench/stencil.hpp"
#include "bind/convert.hpp"

namespace nb = nanobind;

namespace nearfar::bind {

namespace {

constexpr std::string_view copies[] = {"far-far", "far-near", "near-far"};

nb::dict thread_dict(const bench::CompeteThread& thread) {
  nb::list wall, cpu, steal, minor, major, switches;
  for (const bench::Mark& mark : thread.marks) {
    wall.append(mark.usage.wall_ns);
    cpu.append(mark.usage.cpu_ns);
    steal.append(mark.steal_ns);
    minor.append(mark.usage.minor_faults);
    major.append(mark.usage.major_faults);
    switches.append(mark.usage.involuntary_switches);
  }
  nb::dict d;
  d["far"] = thread.far;
  d["cpu"] = thread.cpu;
  d["start_ns"] = thread.start_ns;
  d["wall_ns"] = wall;
  d["cpu_ns"] = cpu;
  d["steal_ns"] = steal;
  d["minor_faults"] = minor;
  d["major_faults"] = major;
  d["involuntary_switches"] = switches;
  return d;
}

nb::dict compete_dict(const bench::CompeteRun& run) {
  nb::list threads;
  for (const bench::CompeteThread& thread : run.threads)
    threads.append(thread_dict(thread));
  nb::dict d;
  d["from_ns"] = run.from_ns;
  d["to_ns"] = run.to_ns;
  d["near_bytes_per_s"] = run.near_bytes_per_s;
  d["far_bytes_per_s"] = run.far_bytes_per_s;
  d["threads"] = threads;
  return d;
}

void register_compete(nb::module_& module) {
  using bench::CompeteBench;
  nb::class_<CompeteBench>(module, "CompeteBench")
      .def(nb::new_([](const char* mode, const char* near, const char* far, std::size_t elements,
                       const std::vector<int>& near_cpus, const std::vector<int>& far_cpus) {
             const auto copy = by_name<bench::Copy>(mode, copies);
             const tier::Spec near_spec = parse_tier(near);
             const tier::Spec far_spec = parse_tier(far);
             return run_unlocked([&] {
               return CompeteBench::create(copy, near_spec, far_spec, elements, near_cpus,
                                           far_cpus);
             });
           }),
           nb::arg("mode"), nb::arg("near"), nb::arg("far"), nb::arg("elements"),
           nb::arg("near_cpus"), nb::arg("far_cpus"))
      .def(
          "run",
          [](CompeteBench& self, std::size_t iterations) {
            return compete_dict(run_unlocked([&] { return self.run(iterations); }));
          },
          nb::arg("iterations"))
      .def("iteration_bytes", &CompeteBench::iteration_bytes)
      .def("check", [](CompeteBench& self) { run_unlocked([&] { return self.check(); }); });
}

constexpr std::string_view versions[] = {"direct", "ghost"};

nb::dict stencil_dict(const bench::StencilRun& run) {
  nb::list near, far, total;
  for (const bench::SweepTimes& sweep : run.sweeps) {
    near.append(sweep.near_ns);
    far.append(sweep.far_ns);
    total.append(sweep.total_ns);
  }
  nb::dict d;
  d["near_ns"] = near;
  d["far_ns"] = far;
  d["total_ns"] = total;
  d["members"] = members_list(run.members);
  return d;
}

void register_stencil(nb::module_& module) {
  using bench::StencilBench;
  nb::class_<StencilBench>(module, "StencilBench")
      .def(nb::new_([](std::size_t rows, std::size_t columns, std::size_t far_rows,
                       const char* version, const char* near, const char* far,
                       const std::vector<int>& near_cpus, const std::vector<int>& far_cpus,
                       std::uint64_t seed, std::size_t width) {
             const auto kernel =
                 width == 0 ? bench::StencilKernel::eight : bench::StencilKernel::seven;
             const bench::StencilShape shape{
                 rows,   columns, far_rows, by_name<bench::StencilVersion>(version, versions),
                 kernel, width};
             const tier::Spec near_spec = parse_tier(near);
             const tier::Spec far_spec = parse_tier(far);
             return run_unlocked([&] {
               return StencilBench::create(shape, near_spec, far_spec, near_cpus, far_cpus, seed);
             });
           }),
           nb::arg("rows"), nb::arg("columns"), nb::arg("far_rows"), nb::arg("version"),
           nb::arg("near"), nb::arg("far"), nb::arg("near_cpus"), nb::arg("far_cpus"),
           nb::arg("seed"), nb::arg("width") = 0)
      .def(
          "run",
          [](StencilBench& self, std::size_t sweeps) {
            return stencil_dict(run_unlocked([&] { return self.run(sweeps); }));
          },
          nb::arg("sweeps"))
      .def(
          "run_serially",
          [](StencilBench& self, std::size_t sweeps) {
            run_unlocked([&] { return self.run_serially(sweeps); });
          },
          nb::arg("sweeps"))
      .def("values", &StencilBench::values)
      .def("checksum", &StencilBench::checksum, nb::call_guard<nb::gil_scoped_release>())
      .def_static("first_value", &StencilBench::first_value, nb::arg("seed"), nb::arg("index"));
}

constexpr const char* stages[] = {"generate", "generate_idle", "transfer", "analyse",
                                  "transfer_idle"};

void append_laps(nb::list& list, const char* side, const std::vector<bench::Lap>& laps) {
  for (const bench::Lap& lap : laps)
    list.append(nb::make_tuple(side, stages[static_cast<std::size_t>(lap.stage)], lap.began_ns,
                               lap.ended_ns));
}

nb::dict pipeline_dict(const bench::PipelineRun& run) {
  nb::list findings;
  for (const bench::Finding& f : run.findings)
    findings.append(nb::make_tuple(f.change, f.analysis.sum, f.analysis.squares,
                                   f.analysis.smallest, f.analysis.largest, f.analysis.step));
  nb::dict d;
  d["generate_ns"] = run.generate_ns;
  d["generate_idle_ns"] = run.generate_idle_ns;
  d["transfer_ns"] = run.transfer_ns;
  d["analyse_ns"] = run.analyse_ns;
  d["transfer_idle_ns"] = run.transfer_idle_ns;
  d["total_ns"] = run.total_ns;
  nb::list laps;
  append_laps(laps, "near", run.near_laps);
  append_laps(laps, "far", run.far_laps);
  d["laps"] = laps;
  d["findings"] = findings;
  d["members"] = members_list(run.members);
  return d;
}

void register_pipeline(nb::module_& module) {
  using bench::PipelineBench;
  nb::class_<PipelineBench>(module, "PipelineBench")
      .def(nb::new_([](std::size_t elements, const char* near, const char* far,
                       const std::vector<int>& near_cpus, const std::vector<int>& far_cpus,
                       std::uint64_t seed) {
             const tier::Spec near_spec = parse_tier(near);
             const tier::Spec far_spec = parse_tier(far);
             return run_unlocked([&] {
               return PipelineBench::create(elements, near_spec, far_spec, near_cpus, far_cpus,
                                            seed);
             });
           }),
           nb::arg("elements"), nb::arg("near"), nb::arg("far"), nb::arg("near_cpus"),
           nb::arg("far_cpus"), nb::arg("seed"))
      .def(
          "run",
          [](PipelineBench& self, std::size_t iterations) {
            return pipeline_dict(run_unlocked([&] { return self.run(iterations); }));
          },
          nb::arg("iterations"))
      .def("stop", &PipelineBench::stop);
}

} // namespace

void register_together(nb::module_& module) {
  register_compete(module);
  register_stencil(module);
  register_pipeline(module);
}

} // namespace nearfar::bind
