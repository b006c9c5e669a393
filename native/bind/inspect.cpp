#include <memory>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind/convert.hpp"
#include "inspect/pool.hpp"
#include "inspect/reach.hpp"
#include "inspect/shred.hpp"

namespace nb = nanobind;

namespace nearfar::bind {

namespace {

constexpr std::string_view kinds[] = {"object", "log", "block", "pool_set", "empty", "other"};

nb::str text(const std::string& bytes) { // a layout's name may hold any bytes
  return nb::steal<nb::str>(PyUnicode_DecodeUTF8(
      bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "backslashreplace"));
}

nb::dict header_dict(const inspect::Header& h) {
  nb::dict d;
  d["major"] = h.major;
  d["features_compat"] = h.compat;
  d["features_incompat"] = h.incompat;
  d["features_ro_compat"] = h.ro_compat;
  d["set_uuid"] = inspect::to_text(h.set_uuid);
  d["uuid"] = inspect::to_text(h.uuid);
  d["pool_id"] = h.pool_id;
  d["created_s"] = h.created_s;
  d["open_when_last_used"] = h.open_when_last_used;
  return d;
}

nb::dict descriptor_dict(const inspect::Descriptor& p) {
  nb::dict d;
  d["layout"] = text(p.layout);
  d["lanes_offset"] = p.lanes_offset;
  d["lanes"] = p.lane_count;
  d["heap_offset"] = p.heap_offset;
  d["heap_bytes"] = p.heap_bytes;
  d["root_offset"] = p.root_offset;
  d["root_bytes"] = p.root_bytes;
  d["run_id"] = p.run_id;
  return d;
}

nb::dict logs_dict(const inspect::LogCounts& counts) {
  nb::dict d;
  d["used"] = counts.used;
  d["pending"] = counts.pending;
  d["entries"] = counts.entries;
  d["extensions"] = counts.extensions;
  return d;
}

nb::dict zones_dict(const inspect::Zones& zones) {
  nb::dict d;
  d["zones"] = zones.count;
  d["zones_in_use"] = zones.in_use;
  d["chunks"] = zones.chunks;
  d["free_chunks"] = zones.free_chunks;
  d["run_chunks"] = zones.run_chunks;
  d["large_chunks"] = zones.large_chunks;
  return d;
}

nb::dict count_dict(const inspect::TypeCount& count) {
  nb::dict d;
  d["objects"] = count.objects;
  d["block_bytes"] = count.block_bytes;
  d["smallest_bytes"] = count.objects == 0 ? 0 : count.smallest;
  d["largest_bytes"] = count.largest;
  return d;
}

nb::list types_list(const inspect::Census& census) {
  nb::list list;
  for (const auto& [type, count] : census.types()) {
    nb::dict d = count_dict(count);
    d["type"] = type;
    list.append(d);
  }
  return list;
}

nb::list runs_list(const inspect::Census& census) {
  nb::list list;
  for (const auto& [block_bytes, count] : census.runs()) {
    nb::dict d;
    d["block_bytes"] = block_bytes;
    d["runs"] = count.runs;
    d["chunks"] = count.chunks;
    d["blocks"] = count.blocks;
    d["used_blocks"] = count.used_blocks;
    list.append(d);
  }
  return list;
}

nb::dict findings_dict(const inspect::Findings& findings) {
  nb::list list;
  for (const inspect::Finding& finding : findings.kept()) {
    nb::dict d;
    d["severity"] = finding.severity == inspect::Severity::damage ? "damage" : "note";
    d["part"] = finding.part;
    d["offset"] = finding.offset;
    d["what"] = text(finding.text);
    list.append(d);
  }
  nb::dict d;
  d["damage"] = findings.damage_count();
  d["notes"] = findings.note_count();
  d["findings"] = list;
  return d;
}

Result<inspect::PoolReport> examine_file(const char* path) {
  Result<inspect::FileView> source = inspect::open_view(path);
  if (!source) return source.error();
  return inspect::examine(*source);
}

nb::dict typed_dict(const inspect::Typed& typed) {
  nb::dict d;
  d["is_nearfar"] = typed.store.is_nearfar;
  d["is_typed"] = typed.store.is_typed;
  d["redo"] = typed.store.path == poolformat::Path::redo;
  nb::list types;
  for (const inspect::StoreType& type : typed.store.types) {
    nb::dict one;
    one["name"] = text(type.name);
    one["bytes"] = type.bytes;
    one["links"] = type.links.size();
    one["secret"] = type.secret;
    types.append(one);
  }
  d["types"] = types;
  d["records"] = typed.records.count;
  d["chunks"] = typed.object_chunks.count;
  d["objects"] = typed.object_chunks.objects;
  return d;
}

/// The common part of the results of examine() and leaks().
nb::dict pool_dict(const inspect::PoolReport& pool) {
  nb::dict d = findings_dict(pool.findings);
  d["kind"] = nb::str(kinds[static_cast<std::size_t>(pool.kind)].data());
  d["size_bytes"] = pool.file_bytes;
  d["usable"] = pool.descriptor.usable;
  d["header"] = header_dict(pool.header);
  d["descriptor"] = descriptor_dict(pool.descriptor);
  d["typed"] = typed_dict(pool.typed);
  return d;
}

nb::dict examine(const char* path) {
  const inspect::PoolReport pool = run_unlocked([&] { return examine_file(path); });
  nb::dict d = pool_dict(pool);
  nb::dict logs;
  logs["internal"] = logs_dict(pool.lanes.internal);
  logs["external"] = logs_dict(pool.lanes.external);
  logs["undo"] = logs_dict(pool.lanes.undo);
  d["logs"] = logs;
  d["heap"] = zones_dict(pool.zones);
  d["types"] = types_list(pool.census);
  d["further_types"] = count_dict(pool.census.further_types());
  d["internal_objects"] = count_dict(pool.census.internal());
  d["all_objects"] = count_dict(pool.census.all());
  d["runs"] = runs_list(pool.census);
  return d;
}

struct Leaks {
  inspect::PoolReport pool;
  inspect::Reach reach;
};

Result<Leaks> find_leaks(const char* path) {
  Result<inspect::FileView> source = inspect::open_view(path);
  if (!source) return source.error();
  Leaks leaks;
  leaks.pool.kind = inspect::identify(*source);
  leaks.pool.file_bytes = source->size();
  if (leaks.pool.kind == inspect::FileKind::object)
    leaks.reach = inspect::find_lost(*source, leaks.pool);
  return leaks;
}

nb::dict leaks(const char* path) {
  const Leaks found = run_unlocked([&] { return find_leaks(path); });
  nb::dict d = pool_dict(found.pool);
  d["replayed"] = found.pool.lanes.replayed && found.pool.typed.records.replayed;
  d["by_type"] = found.reach.typed;
  d["objects"] = found.reach.objects;
  d["lost"] = found.reach.lost;
  d["lost_bytes"] = found.reach.lost_bytes;
  nb::list types;
  for (const inspect::Lost& lost : found.reach.types) {
    nb::dict type;
    type["type"] = lost.type;
    type["name"] = text(lost.name);
    type["objects"] = lost.objects;
    type["heads"] = lost.heads;
    type["block_bytes"] = lost.block_bytes;
    type["examples"] = lost.examples;
    types.append(type);
  }
  d["types"] = types;
  return d;
}

/// `progress(done, of)` is called every MiB; an exception of it stops the work.
nb::dict shred(const char* path, const nb::callable& progress) {
  std::unique_ptr<nb::python_error> raised;
  const auto report = [&](inspect::Offset done, inspect::Offset of) {
    nb::gil_scoped_acquire locked;
    try {
      if (PyErr_CheckSignals() != 0) nb::raise_python_error();
      progress(done, of);
    } catch (const nb::python_error& error) {
      raised = std::make_unique<nb::python_error>(error);
    }
    return raised == nullptr;
  };
  Result<inspect::Shredded> done = [&] {
    nb::gil_scoped_release unlocked;
    return inspect::shred(path, report);
  }();
  if (raised != nullptr) throw nb::python_error(*raised);
  if (!done) raise(done.error());
  nb::dict d;
  d["size_bytes"] = done->bytes;
  d["read_from_cache"] = done->read_from_cache;
  d["file_system"] = done->blocks.name;
  d["copies_on_write"] = done->blocks.copies_on_write;
  d["in_memory"] = done->blocks.in_memory;
  return d;
}

} // namespace

void register_inspect(nb::module_& module) {
  module.def("pool_examine", examine, nb::arg("path"));
  module.def("pool_leaks", leaks, nb::arg("path"));
  module.def("pool_shred", shred, nb::arg("path"), nb::arg("progress"));
}

} // namespace nearfar::bind
