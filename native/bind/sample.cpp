#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "bind/convert.hpp"
#include "sample/sampler.hpp"

namespace nb = nanobind;

namespace nearfar::bind {

namespace {

using namespace nearfar::sample;

constexpr const char* kind_names[trace::site_kinds] = {"unknown", "heap",    "stack",
                                                       "statics", "mapping", "code"};

std::unique_ptr<Sampler> kept(Result<Sampler> made) {
  if (!made) raise(made.error());
  return std::make_unique<Sampler>(std::move(*made));
}

/// A vector as bytes, whose types the stub names.
template <class T>
nb::bytes bytes_of(std::span<const T> values) {
  return nb::bytes(values.data(), values.size_bytes());
}

nb::list code_locations(const Sampler& sampler) {
  nb::list list;
  for (const CodeLocation& place : sampler.code()) {
    nb::dict d;
    d["file"] = place.file;
    d["offset"] = place.offset;
    d["access"] = place.access;
    d["bytes"] = place.bytes;
    d["is_load"] = place.is_load;
    d["is_store"] = place.is_store;
    d["is_string"] = place.is_string;
    d["follows_pointer"] = place.follows_pointer;
    d["is_readable"] = place.is_readable;
    list.append(d);
  }
  return list;
}

nb::list data_regions(const Sampler& sampler) {
  nb::list list;
  for (const DataRegion& place : sampler.data()) {
    nb::dict d;
    d["kind"] = kind_names[static_cast<unsigned>(place.kind)];
    nb::list frames;
    for (const DataRegion::Frame& frame : place.frames)
      frames.append(nb::make_tuple(frame.file, frame.offset));
    d["frames"] = frames;
    d["begin"] = place.begin;
    d["bytes"] = place.bytes;
    d["name"] = sampler.names()[place.name];
    d["least_bytes"] = place.least_bytes;
    d["allocations"] = place.allocations;
    d["allocated_bytes"] = place.allocated_bytes;
    d["peak_bytes"] = place.peak_bytes;
    nb::list held;
    for (const DataRegion::Held& at : place.held)
      held.append(nb::make_tuple(at.time_ns, at.bytes));
    d["held"] = held;
    list.append(d);
  }
  return list;
}

nb::list files(const Sampler& sampler) {
  nb::list list;
  for (const MappedFile& file : sampler.files())
    list.append(nb::make_tuple(nb::bytes(file.path.data(), file.path.size()),
                               file.elf ? file.elf->build_id : std::string()));
  return list;
}

nb::list regions(const Sampler& sampler) {
  nb::list list;
  for (const ProcessRegion& region : sampler.regions())
    list.append(nb::make_tuple(region.process, region.begin, region.end,
                               nb::bytes(region.name.data(), region.name.size()),
                               region.is_statics));
  return list;
}

nb::list programs(const Sampler& sampler) {
  nb::list list;
  for (const SampledProgram& program : sampler.programs())
    list.append(nb::make_tuple(program.process, nb::bytes(program.name.data(), program.name.size()),
                               program.samples));
  return list;
}

} // namespace

void register_sample(nb::module_& module) {
  nb::class_<Sampler>(module, "Sampler")
      .def_static(
          "open",
          [](std::uint64_t period_ns, std::uint64_t fault_period, bool by_signals,
             double max_cost) {
            const auto clock = by_signals ? ClockSource::signals : ClockSource::kernel;
            return kept(Sampler::open({period_ns, fault_period, false, clock, max_cost}));
          },
          nb::arg("period_ns"), nb::arg("fault_period"), nb::arg("by_signals") = false,
          nb::arg("max_cost") = 0.0)
      .def_static(
          "attach",
          [](int process, std::uint64_t period_ns, std::uint64_t fault_period, bool per_cpu_clock) {
            return kept(Sampler::attach(process, {period_ns, fault_period, per_cpu_clock}));
          },
          nb::arg("process"), nb::arg("period_ns"), nb::arg("fault_period"),
          nb::arg("per_cpu_clock") = true)
      .def_static(
          "read",
          [](const char* path) { return kept(run_unlocked([&] { return Sampler::read(path); })); },
          nb::arg("path"))
      .def("log_value", &Sampler::log_value)
      .def("poll", &Sampler::poll, nb::call_guard<nb::gil_scoped_release>())
      .def("stop", &Sampler::stop)
      .def("samples", [](const Sampler& self) { return bytes_of(self.samples()); })
      .def("every", &Sampler::keeps_one_in)
      .def("code", &code_locations)
      .def("data", &data_regions)
      .def("files", &files)
      .def("regions", &regions)
      .def("programs", &programs)
      .def("period_ns", &Sampler::period_ns)
      .def("enabled_share", &Sampler::enabled_share)
      .def("bursts",
           [](const Sampler& self) {
             nb::list list;
             for (const std::uint64_t begin_ns : self.bursts())
               list.append(begin_ns);
             return list;
           })
      .def("lost", &Sampler::lost)
      .def("unlogged", &Sampler::unlogged)
      .def("logged", [](const Sampler& self) {
        nb::list list;
        for (const pid_t process : self.logged())
          list.append(process);
        return list;
      });
}

} // namespace nearfar::bind
