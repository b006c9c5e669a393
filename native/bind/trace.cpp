#include <memory>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "bind/convert.hpp"
#include "bind/trace_stats.hpp"
#include "trace/collector.hpp"
#include "trace/interchange.hpp"
#include "trace/reader.hpp"

namespace nb = nanobind;

namespace nearfar::bind {

namespace {

using namespace nearfar::trace;

constexpr std::string_view form_names[] = {"ramulator", "dramsim3", "dramsys", "champsim"};
constexpr const char* kind_names[kinds] = {"load", "store", "prefetch", "write_back", "nt_store"};
constexpr const char* site_names[site_kinds] = {"unknown", "heap",    "stack",
                                                "statics", "mapping", "code"};

/// (size in bytes, ways)
using Shape = std::pair<std::uint64_t, unsigned>;
using Fields = std::vector<std::pair<std::string, std::string>>;

/// The collector of a ring, which outlives it.
class Collecting {
public:
  Collecting(nb::object ring, CacheFilter filter, int fd, const Header& header,
             std::uint64_t max_records)
      : ring_(std::move(ring)), collector_(nb::cast<RingFile&>(ring_).shared(), std::move(filter),
                                           fd, header, max_records) {}
  Collector& collector() { return collector_; }

private:
  nb::object ring_;
  Collector collector_;
};

cache::Geometry geometry(const Shape& shape) { return {shape.first, shape.second}; }

std::unique_ptr<RingFile> make_ring(const Shape& l1) {
  const auto sets = static_cast<std::uint32_t>(l1.first / 64 / std::max(l1.second, 1u));
  Result<RingFile> ring = RingFile::create({sets, l1.second});
  if (!ring) raise(ring.error());
  return std::make_unique<RingFile>(std::move(*ring));
}

std::unique_ptr<Collecting> make_collecting(nb::object ring, int fd, const Shape& l2,
                                            const std::optional<Shape>& llc,
                                            const std::vector<Shape>& other_llcs,
                                            const std::vector<std::pair<unsigned, unsigned>>& tlb,
                                            unsigned cores, bool prefetch, const char* after,
                                            const Fields& fields, std::uint64_t max_records) {
  HierarchyConfig plan;
  plan.l2 = geometry(l2);
  if (llc) plan.llc = geometry(*llc);
  for (const Shape& other : other_llcs)
    plan.other_llcs.push_back(geometry(other));
  for (const auto& [entries, ways] : tlb)
    plan.tlb.push_back({entries, ways});
  plan.cores = cores;
  plan.prefetch = prefetch;
  plan.after = by_name<After>(after, after_names);
  Result<CacheFilter> filter = CacheFilter::create(plan);
  if (!filter) raise(filter.error());
  return std::make_unique<Collecting>(std::move(ring), std::move(*filter), fd,
                                      Header{64, plan.after, fields}, max_records);
}

nb::dict totals_dict(const Totals& totals) {
  nb::dict d;
  for (std::size_t i = 0; i < total_count; ++i)
    d[total_names[i]] = totals.of[i];
  return d;
}

nb::dict run_collecting(Collecting& self) {
  Collected done = run_unlocked([&] { return self.collector().run(); });
  nb::dict d;
  d["totals"] = totals_dict(done.totals);
  d["other_misses"] = done.other_llc_misses;
  d["records"] = done.records;
  d["size_bytes"] = done.bytes;
  d["threads"] = done.threads;
  d["processes"] = done.processes;
  d["lost_threads"] = done.lost_threads;
  d["lost_entries"] = done.lost_events;
  d["executed"] = done.executed;
  d["recorded_cpu_ns"] = done.recorded_cpu_ns;
  nb::list programs;
  for (const Program& program : done.programs)
    programs.append(
        nb::make_tuple(nb::bytes(program.path.data(), program.path.size()), program.instructions));
  d["programs"] = programs;
  d["touched"] = touched_dict(done.touched);
  d["touches"] = nb::cast(std::move(done.touches));
  d["float_instructions"] = done.float_instructions;
  return d;
}

TraceReader open_reader(const char* path) {
  Result<TraceReader> reader = TraceReader::open(path);
  if (!reader) raise(reader.error());
  return std::move(*reader);
}

nb::dict kinds_dict(const RecordCounts::Kinds& of) {
  nb::dict d;
  for (std::size_t i = 0; i < kinds; ++i)
    d[kind_names[i]] = of[i];
  return d;
}

nb::dict frame_dict(const Tables& tables, const Frame& frame) {
  nb::dict d;
  const bool known = frame.module >= 0;
  const Module module = known ? tables.modules[static_cast<std::size_t>(frame.module)] : Module{};
  d["path"] = nb::bytes(module.path.data(), module.path.size());
  d["build_id"] = module.build_id;
  d["offset"] = frame.offset;
  return d;
}

nb::list sites_list(const Tables& tables, const RecordCounts& counts) {
  std::vector<std::uint64_t> objects(tables.sites.size());
  for (std::size_t i = 1; i < tables.objects.size(); ++i)
    ++objects[tables.objects[i].site];
  nb::list list;
  for (std::size_t i = 0; i < tables.sites.size(); ++i) {
    const Site& site = tables.sites[i];
    nb::dict d;
    d["kind"] = site_names[static_cast<std::size_t>(site.kind)];
    nb::list frames;
    for (const Frame& frame : site.frames)
      frames.append(frame_dict(tables, frame));
    d["frames"] = frames;
    d["allocations"] = site.allocations;
    d["allocated_bytes"] = site.bytes;
    d["peak_bytes"] = site.peak_bytes;
    d["touched_objects"] = objects[i];
    d["records"] = kinds_dict(counts.sites[i]);
    list.append(d);
  }
  return list;
}

nb::dict header_dict(const TraceReader& reader) {
  nb::dict d;
  d["line_bytes"] = reader.header().line_bytes;
  d["after"] = name_of(reader.header().after);
  nb::list fields;
  for (const auto& [key, value] : reader.header().fields)
    fields.append(
        nb::make_tuple(nb::bytes(key.data(), key.size()), nb::bytes(value.data(), value.size())));
  d["fields"] = fields;
  return d;
}

nb::dict stats(const char* path) {
  TraceReader reader = open_reader(path);
  RecordCounts counts;
  {
    nb::gil_scoped_release unlocked;
    for (auto part = reader.next(); !part.empty(); part = reader.next())
      counts.add(part, reader.tables());
    counts.sites.resize(reader.tables().sites.size());
  }
  return trace_stats_dict(reader, counts);
}

/// The frame of a code address: its module and offset.
Frame frame_of(const Tables& tables, std::uint64_t code) {
  for (std::size_t i = tables.modules.size(); i-- > 0;) {
    const Module& module = tables.modules[i];
    if (code >= module.base && code - module.base < module.bytes)
      return {static_cast<std::int32_t>(i), code - module.base};
  }
  return {-1, code};
}

nb::dict record_dict(const TraceReader& reader, const Record& record) {
  const Tables& tables = reader.tables();
  const Object& object = tables.objects[record.object];
  const std::uint64_t address = record.line * reader.header().line_bytes;
  const Site& site = tables.sites[object.site];
  nb::dict d;
  d["kind"] = kind_names[static_cast<std::size_t>(record.kind)];
  d["address"] = address & ((std::uint64_t{1} << process_shift) - 1);
  d["process"] = address >> process_shift;
  d["thread"] = record.thread;
  d["code"] = record.code;
  d["frame"] = frame_dict(tables, frame_of(tables, record.code));
  d["instructions"] = record.instructions;
  d["depends"] = record.depends;
  d["object"] = record.object;
  d["object_address"] = object.address & ((std::uint64_t{1} << process_shift) - 1);
  d["object_bytes"] = object.bytes;
  d["site"] = object.site;
  d["site_kind"] = site_names[static_cast<std::size_t>(site.kind)];
  d["site_frame"] = frame_dict(tables, site.frames.empty() ? Frame{} : site.frames[0]);
  return d;
}

nb::dict show(const char* path, std::uint64_t first, std::uint64_t count) {
  TraceReader reader = open_reader(path);
  nb::list rows;
  auto part = reader.seek(first);
  std::uint64_t number = reader.first();
  while (!part.empty() && rows.size() < count) {
    for (const Record& record : part) {
      if (number++ < first || rows.size() >= count) continue;
      rows.append(record_dict(reader, record));
    }
    if (rows.size() < count) part = reader.next();
  }
  nb::dict d = header_dict(reader);
  d["rows"] = rows;
  d["ending"] = reader.ending();
  return d;
}

/// {reads, writes, ending} of export_trace() or import_trace()
template <auto exchange>
nb::dict exchanged(const char* from, int fd, const char* form) {
  const Form wanted = by_name<Form>(form, form_names);
  const Exchanged done = run_unlocked([&] { return exchange(from, fd, wanted); });
  nb::dict d;
  d["reads"] = done.reads;
  d["writes"] = done.writes;
  d["ending"] = done.ending;
  return d;
}

} // namespace

nb::dict touched_dict(const FirstTouches& touched) {
  nb::dict d;
  d["small"] = touched.small.faults();
  d["large"] = touched.large.faults();
  d["fixed_pages"] = touched.small.peak_non_heap_pages();
  return d;
}

nb::dict trace_stats_dict(const TraceReader& reader, const RecordCounts& counts) {
  nb::dict d = header_dict(reader);
  d["totals"] = totals_dict(reader.totals());
  d["records"] = reader.records();
  d["kinds"] = kinds_dict(counts.all);
  d["dependent"] = counts.dependent;
  d["complete"] = reader.complete();
  d["ending"] = reader.ending();
  d["exit_code"] = reader.tables().exit_code;
  d["threads"] = reader.tables().threads;
  d["sites"] = sites_list(reader.tables(), counts);
  return d;
}

void register_trace(nb::module_& module) {
  nb::class_<TouchLog>(module, "TraceTouches")
      .def(nb::init<>())
      .def("__len__", [](const TouchLog& self) { return self.size(); });
  nb::class_<RingFile>(module, "TraceRing")
      .def(nb::new_(&make_ring), nb::arg("l1"))
      .def_prop_ro("path", &RingFile::path);
  nb::class_<Collecting>(module, "TraceCollector")
      .def(nb::new_(&make_collecting), nb::arg("ring"), nb::arg("fd"), nb::arg("l2"),
           nb::arg("llc").none(), nb::arg("other_llcs"), nb::arg("tlb"), nb::arg("cores"),
           nb::arg("prefetch"), nb::arg("after"), nb::arg("fields"), nb::arg("max_records"))
      .def("run", run_collecting)
      .def(
          "end",
          [](Collecting& self, std::optional<std::uint32_t> exit_code) {
            self.collector().end(exit_code);
          },
          nb::arg("exit_code").none());
  module.def("trace_export", exchanged<export_trace>, nb::arg("path"), nb::arg("fd"),
             nb::arg("form"));
  module.def("trace_import", exchanged<import_trace>, nb::arg("path"), nb::arg("fd"),
             nb::arg("form"));
  module.def("trace_stats", stats, nb::arg("path"));
  module.def("trace_show", show, nb::arg("path"), nb::arg("first"), nb::arg("count"));
}

} // namespace nearfar::bind
