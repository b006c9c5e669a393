#include "topo/topology.hpp"

#include <algorithm>
#include <cstring>
#include <doctest/doctest.h>
#include <fstream>
#include <hwloc.h>
#include <sched.h>

#include "test_support.hpp"

using namespace nearfar;

namespace {

/// Two packages, a node of 1 GiB each, two cores of two threads each, L3 per package.
void write_two_packages(const char* path) {
  hwloc_topology_t topology = nullptr;
  REQUIRE(hwloc_topology_init(&topology) == 0);
  REQUIRE(hwloc_topology_set_synthetic(topology, "pack:2 [numa(memory=1GiB)] l3:1(size=4194304) "
                                                 "core:2 pu:2") == 0);
  REQUIRE(hwloc_topology_load(topology) == 0);
  hwloc_obj_t nodes[2];
  for (unsigned i = 0; i < 2; ++i)
    nodes[i] = hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, i);
  hwloc_uint64_t values[] = {10, 21, 17, 10};
  const auto handle = hwloc_distances_add_create(
      topology, "slit", HWLOC_DISTANCES_KIND_FROM_OS | HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0);
  REQUIRE(hwloc_distances_add_values(topology, handle, 2, nodes, values, 0) == 0);
  REQUIRE(hwloc_distances_add_commit(topology, handle, 0) == 0);
  hwloc_location initiator{};
  initiator.type = HWLOC_LOCATION_TYPE_CPUSET;
  initiator.location.cpuset = nodes[0]->cpuset;
  REQUIRE(hwloc_memattr_set_value(topology, HWLOC_MEMATTR_ID_READ_LATENCY, nodes[1], &initiator, 0,
                                  250) == 0);
  REQUIRE(hwloc_memattr_set_value(topology, HWLOC_MEMATTR_ID_BANDWIDTH, nodes[1], &initiator, 0,
                                  17800) == 0);
  hwloc_obj_add_info(hwloc_get_root_obj(topology), "OSName", "Linux");
  hwloc_obj_add_info(hwloc_get_root_obj(topology), "OSRelease", "6.1.0");
  hwloc_obj_add_info(hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0), "CPUModel", "Test 9");
  REQUIRE(hwloc_topology_export_xml(topology, path, 0) == 0);
  hwloc_topology_destroy(topology);
}

} // namespace

TEST_CASE("a described machine reads back") {
  const test::Folder folder;
  write_two_packages(folder.path("two.xml").c_str());
  Result<topo::Topology> found = topo::discover(folder.path("two.xml").c_str());
  REQUIRE(found);
  CHECK(found->processor == "Test 9");
  CHECK(found->kernel == "Linux 6.1.0");
  REQUIRE(found->cpus.size() == 8);
  CHECK(found->cpus[5].core == 2);
  CHECK(found->cpus[5].package == 1);
  CHECK(std::all_of(found->cpus.begin(), found->cpus.end(), [](auto& c) { return c.usable; }));
  REQUIRE(found->caches.size() == 2);
  CHECK(found->caches[1].level == 3);
  CHECK(found->caches[1].size_bytes == 4194304);
  CHECK(found->caches[1].cpus == std::vector<int>{4, 5, 6, 7});
  CHECK(found->memory_caches.empty());
}

TEST_CASE("XML of a described machine describes the same machine") {
  const test::Folder folder;
  write_two_packages(folder.path("two.xml").c_str());
  Result<std::string> xml = topo::describe_as_xml(folder.path("two.xml").c_str());
  REQUIRE(xml);
  std::ofstream(folder.path("again.xml")) << *xml;
  Result<topo::Topology> found = topo::discover(folder.path("again.xml").c_str());
  REQUIRE(found);
  CHECK(found->processor == "Test 9");
  CHECK(found->cpus.size() == 8);
  CHECK(found->nodes[1].distances == std::vector<std::uint64_t>{17, 10});
  CHECK(found->nodes[1].claims.read_latency_ns == 250.0);
  CHECK_FALSE(topo::describe_as_xml(folder.path("missing.xml").c_str()));
}

TEST_CASE("distances and claims of nodes keep their direction") {
  const test::Folder folder;
  write_two_packages(folder.path("two.xml").c_str());
  Result<topo::Topology> found = topo::discover(folder.path("two.xml").c_str());
  REQUIRE(found);
  REQUIRE(found->nodes.size() == 2);
  CHECK(found->nodes[0].local_bytes == 1U << 30);
  CHECK(found->nodes[0].distances == std::vector<std::uint64_t>{10, 21});
  CHECK(found->nodes[1].distances == std::vector<std::uint64_t>{17, 10});
  CHECK_FALSE(found->nodes[0].claims.read_latency_ns.has_value());
  CHECK(found->nodes[1].claims.read_latency_ns == 250.0);
  CHECK_FALSE(found->nodes[1].claims.write_latency_ns.has_value());
  CHECK(found->nodes[1].claims.read_bandwidth_bytes_per_s == 17.8e9);
  CHECK(found->nodes[1].claims.write_bandwidth_bytes_per_s == 17.8e9);
}

TEST_CASE("a damaged description is bad input and names the file") {
  const test::Folder folder;
  write_two_packages(folder.path("two.xml").c_str());
  std::ifstream whole(folder.path("two.xml"));
  const std::string text((std::istreambuf_iterator<char>(whole)), {});
  std::ofstream(folder.path("half.xml")) << text.substr(0, text.size() / 2);
  for (const char* name : {"half.xml", "missing.xml"}) {
    const Result<topo::Topology> found = topo::discover(folder.path(name).c_str());
    REQUIRE_FALSE(found);
    CHECK(found.error().code == Errc::bad_input);
    CHECK(std::strstr(found.error().what, name) != nullptr);
  }
}

TEST_CASE("this machine's usable processors are the affinity mask") {
  Result<topo::Topology> found = topo::discover(nullptr);
  REQUIRE(found);
  REQUIRE_FALSE(found->nodes.empty());
  cpu_set_t set;
  CPU_ZERO(&set);
  REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
  for (const topo::Cpu& cpu : found->cpus)
    CHECK(cpu.usable == (CPU_ISSET(static_cast<std::size_t>(cpu.id), &set) != 0));
}
