#include "topo/topology.hpp"

#include <cerrno>
#include <cstring>
#include <hwloc.h>
#include <memory>

namespace nearfar::topo {

namespace {

struct Destroy {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Handle = std::unique_ptr<hwloc_topology, Destroy>;

struct FreeBitmap {
  void operator()(hwloc_bitmap_s* bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

std::vector<int> members(hwloc_const_bitmap_t bitmap) {
  std::vector<int> list;
  if (bitmap == nullptr) return list;
  for (int i = hwloc_bitmap_first(bitmap); i >= 0; i = hwloc_bitmap_next(bitmap, i))
    list.push_back(i);
  return list;
}

std::string info(hwloc_obj_t object, const char* name) {
  const char* value = object == nullptr ? nullptr : hwloc_obj_get_info_by_name(object, name);
  return value == nullptr ? "" : value;
}

std::string text(const char* value) { return value == nullptr ? "" : value; }

Error refuse_xml(const char* path) {
  return Error::make(Errc::bad_input, "%s is not a machine description of hwloc, or is damaged",
                     path)
      .try_next("write one with `lstopo --of xml %.100s`", path);
}

Result<Handle> load(const char* xml_path) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return Error::make(Errc::os_error, "hwloc does not start");
  Handle topology(raw);
  // Processors that the system withholds from us stay in the picture, marked as not usable.
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  if (xml_path != nullptr && hwloc_topology_set_xml(raw, xml_path) != 0)
    return refuse_xml(xml_path);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_MEMCACHE, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_icache_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_load(raw) == 0) return topology;
  if (xml_path != nullptr) return refuse_xml(xml_path);
  return Error::make(Errc::unsupported, "hwloc cannot read this machine: %s", std::strerror(errno))
      .try_next("see whether `lstopo` works here; /sys and /proc must be mounted");
}

/// The value seen from the node's best initiator.
std::optional<double> attribute(hwloc_topology_t topology, hwloc_obj_t node,
                                hwloc_memattr_id_t which) {
  hwloc_location initiator{};
  hwloc_uint64_t value = 0;
  if (hwloc_memattr_get_best_initiator(topology, which, node, 0, &initiator, &value) != 0)
    return std::nullopt;
  return static_cast<double>(value);
}

std::optional<double> either(std::optional<double> exact, std::optional<double> general,
                             double factor) {
  if (!exact) exact = general;
  if (exact) *exact *= factor;
  return exact;
}

Claims read_claims(hwloc_topology_t topology, hwloc_obj_t node) {
  const auto get = [&](hwloc_memattr_id_t which) { return attribute(topology, node, which); };
  const auto latency = get(HWLOC_MEMATTR_ID_LATENCY);
  const auto bandwidth = get(HWLOC_MEMATTR_ID_BANDWIDTH);
  // hwloc documents the unit as MiB/s, but passes on the kernel's value, which is MB/s as in the
  // HMAT.
  constexpr double megabyte = 1e6;
  return {either(get(HWLOC_MEMATTR_ID_READ_LATENCY), latency, 1),
          either(get(HWLOC_MEMATTR_ID_WRITE_LATENCY), latency, 1),
          either(get(HWLOC_MEMATTR_ID_READ_BANDWIDTH), bandwidth, megabyte),
          either(get(HWLOC_MEMATTR_ID_WRITE_BANDWIDTH), bandwidth, megabyte)};
}

std::vector<hwloc_obj_t> objects(hwloc_topology_t topology, hwloc_obj_type_t type) {
  std::vector<hwloc_obj_t> list;
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr)
    list.push_back(object);
  return list;
}

void read_distances(hwloc_topology_t topology, const std::vector<hwloc_obj_t>& objs,
                    std::vector<Node>& nodes) {
  hwloc_distances_s* matrix = nullptr;
  unsigned count = 1;
  const unsigned long kind = HWLOC_DISTANCES_KIND_FROM_OS | HWLOC_DISTANCES_KIND_MEANS_LATENCY;
  if (hwloc_distances_get_by_type(topology, HWLOC_OBJ_NUMANODE, &count, &matrix, kind, 0) != 0 ||
      count == 0)
    return;
  if (matrix->nbobjs == objs.size())
    for (std::size_t from = 0; from < objs.size(); ++from) {
      const int row = hwloc_distances_obj_index(matrix, objs[from]);
      for (const hwloc_obj_t to : objs) {
        const int column = hwloc_distances_obj_index(matrix, to);
        if (row < 0 || column < 0) continue;
        const auto at = static_cast<std::size_t>(row) * matrix->nbobjs;
        nodes[from].distances.push_back(matrix->values[at + static_cast<std::size_t>(column)]);
      }
    }
  hwloc_distances_release(topology, matrix);
}

std::vector<Node> read_nodes(hwloc_topology_t topology) {
  const std::vector<hwloc_obj_t> objs = objects(topology, HWLOC_OBJ_NUMANODE);
  std::vector<Node> nodes;
  for (const hwloc_obj_t object : objs) {
    Node node;
    node.id = static_cast<int>(object->os_index);
    node.local_bytes = object->attr->numanode.local_memory;
    node.subtype = text(object->subtype);
    node.near_cpus = members(object->cpuset);
    node.claims = read_claims(topology, object);
    nodes.push_back(std::move(node));
  }
  read_distances(topology, objs, nodes);
  return nodes;
}

Cache read_cache(hwloc_obj_t object) {
  const auto& facts = object->attr->cache;
  Cache cache;
  cache.level = object->type == HWLOC_OBJ_MEMCACHE ? 0 : static_cast<int>(facts.depth);
  cache.type = facts.type == HWLOC_OBJ_CACHE_DATA          ? 'd'
               : facts.type == HWLOC_OBJ_CACHE_INSTRUCTION ? 'i'
                                                           : 'u';
  cache.size_bytes = facts.size;
  cache.line_bytes = facts.linesize;
  cache.ways = facts.associativity;
  cache.cpus = members(object->cpuset);
  return cache;
}

std::vector<Cache> read_caches(hwloc_topology_t topology) {
  std::vector<Cache> caches;
  for (const hwloc_obj_type_t type :
       {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L1ICACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L2ICACHE,
        HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L5CACHE})
    for (const hwloc_obj_t object : objects(topology, type))
      caches.push_back(read_cache(object));
  return caches;
}

std::vector<MemoryCache> read_memory_caches(hwloc_topology_t topology) {
  std::vector<MemoryCache> caches;
  for (const hwloc_obj_t object : objects(topology, HWLOC_OBJ_MEMCACHE))
    for (const int node : members(object->nodeset))
      caches.push_back({node, read_cache(object)});
  return caches;
}

/// CPUs that this process may use; in a file, those that its writer could use.
Bitmap usable_set(hwloc_topology_t topology) {
  Bitmap set(hwloc_bitmap_alloc());
  if (hwloc_topology_is_thissystem(topology) != 0 &&
      hwloc_get_cpubind(topology, set.get(), HWLOC_CPUBIND_THREAD) == 0) {
    hwloc_bitmap_and(set.get(), set.get(), hwloc_topology_get_allowed_cpuset(topology));
    return set;
  }
  hwloc_bitmap_copy(set.get(), hwloc_topology_get_allowed_cpuset(topology));
  return set;
}

std::vector<Cpu> read_cpus(hwloc_topology_t topology) {
  const Bitmap usable = usable_set(topology);
  std::vector<Cpu> cpus;
  for (const hwloc_obj_t object : objects(topology, HWLOC_OBJ_PU)) {
    const hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, object);
    const hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, object);
    Cpu cpu;
    cpu.id = static_cast<int>(object->os_index);
    // The system numbers cores anew in every package; hwloc's own number is the machine's.
    cpu.core = static_cast<int>((core == nullptr ? object : core)->logical_index);
    cpu.package = package == nullptr || package->os_index == HWLOC_UNKNOWN_INDEX
                      ? 0
                      : static_cast<int>(package->os_index);
    cpu.usable = hwloc_bitmap_isset(usable.get(), object->os_index) != 0;
    cpus.push_back(cpu);
  }
  return cpus;
}

} // namespace

Result<Topology> discover(const char* xml_path) {
  Result<Handle> handle = load(xml_path);
  if (!handle) return handle.error();
  hwloc_topology_t topology = handle->get();
  const hwloc_obj_t root = hwloc_get_root_obj(topology);
  Topology found;
  found.processor = info(hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0), "CPUModel");
  if (found.processor.empty()) found.processor = info(root, "CPUModel");
  found.kernel = info(root, "OSName");
  if (const std::string release = info(root, "OSRelease"); !release.empty())
    found.kernel += " " + release;
  found.nodes = read_nodes(topology);
  found.caches = read_caches(topology);
  found.memory_caches = read_memory_caches(topology);
  found.cpus = read_cpus(topology);
  return found;
}

Result<std::string> describe_as_xml(const char* xml_path) {
  Result<Handle> handle = load(xml_path);
  if (!handle) return handle.error();
  char* buffer = nullptr;
  int bytes = 0; // with the zero byte at the end
  if (hwloc_topology_export_xmlbuffer(handle->get(), &buffer, &bytes, 0) != 0)
    return Error::make(Errc::unsupported, "hwloc cannot describe this machine as XML: %s",
                       std::strerror(errno));
  std::string xml(buffer);
  hwloc_free_xmlbuffer(handle->get(), buffer);
  return xml;
}

} // namespace nearfar::topo
