#include "topo/tlb.hpp"
#include "topo/topology.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind/convert.hpp"

namespace nb = nanobind;

namespace nearfar::bind {

namespace {

nb::dict node_dict(const topo::Node& node) {
  nb::dict d;
  d["id"] = node.id;
  d["local_bytes"] = node.local_bytes;
  d["subtype"] = node.subtype;
  d["near_cpus"] = node.near_cpus;
  d["distances"] = node.distances;
  d["read_latency_ns"] = node.claims.read_latency_ns;
  d["write_latency_ns"] = node.claims.write_latency_ns;
  d["read_bandwidth_bytes_per_s"] = node.claims.read_bandwidth_bytes_per_s;
  d["write_bandwidth_bytes_per_s"] = node.claims.write_bandwidth_bytes_per_s;
  return d;
}

nb::dict cache_dict(const topo::Cache& cache) {
  nb::dict d;
  d["level"] = cache.level;
  d["type"] = std::string(1, cache.type);
  d["size_bytes"] = cache.size_bytes;
  d["line_bytes"] = cache.line_bytes;
  d["ways"] = cache.ways;
  d["cpus"] = cache.cpus;
  return d;
}

nb::dict memory_cache_dict(const topo::MemoryCache& found) {
  nb::dict d = cache_dict(found.cache);
  d["node"] = found.node;
  return d;
}

nb::dict cpu_dict(const topo::Cpu& cpu) {
  nb::dict d;
  d["id"] = cpu.id;
  d["core"] = cpu.core;
  d["package"] = cpu.package;
  d["usable"] = cpu.usable;
  return d;
}

template <class Item>
nb::list listed(const std::vector<Item>& items, nb::dict (*as_dict)(const Item&)) {
  nb::list list;
  for (const Item& item : items)
    list.append(as_dict(item));
  return list;
}

} // namespace

void register_topo(nb::module_& module) {
  module.def(
      "topology_xml",
      [](const std::optional<std::string>& xml_path) {
        return run_unlocked(
            [&] { return topo::describe_as_xml(xml_path ? xml_path->c_str() : nullptr); });
      },
      nb::arg("xml_path").none());
  module.def(
      "topology",
      [](const std::optional<std::string>& xml_path) {
        const topo::Topology found =
            run_unlocked([&] { return topo::discover(xml_path ? xml_path->c_str() : nullptr); });
        nb::dict d;
        d["processor"] = found.processor;
        d["kernel"] = found.kernel;
        d["nodes"] = listed(found.nodes, node_dict);
        d["caches"] = listed(found.caches, cache_dict);
        d["memory_caches"] = listed(found.memory_caches, memory_cache_dict);
        d["cpus"] = listed(found.cpus, cpu_dict);
        return d;
      },
      nb::arg("xml_path").none());
  module.def("data_tlb", [] {
    std::vector<std::pair<unsigned, unsigned>> levels;
    for (const topo::TlbLevel& level : topo::data_tlb())
      levels.emplace_back(level.entries, level.ways);
    return levels;
  });
}

} // namespace nearfar::bind
