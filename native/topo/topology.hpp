// A machine as hwloc reports it: CPUs, caches, memory nodes and the distances between them.
//
// Purpose        the facts behind `nearfar topo`, of this machine or of one described by an XML
//                file that hwloc exported. Devices that hwloc does not describe (DAX, NVDIMM and
//                CXL regions) are plain text under /sys: nearfar.machine reads and checks them.
// Thread safety  functions may run at once.
// Errors         bad_input for a file that is not hwloc's XML, unsupported if hwloc sees nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace nearfar::topo {

/// Claims of the firmware (ACPI HMAT) on a node, seen from its nearest CPUs; not measured.
struct Claims {
  std::optional<double> read_latency_ns;
  std::optional<double> write_latency_ns;
  std::optional<double> read_bandwidth_bytes_per_s;
  std::optional<double> write_bandwidth_bytes_per_s;
};

struct Node {
  int id = 0;
  std::uint64_t local_bytes = 0;
  std::string subtype;                  ///< DRAM, HBM, NVM, SPM... as hwloc guesses it; often empty
  std::vector<int> near_cpus;           ///< next to it in the tree; a CPU-less node has them too
  std::vector<std::uint64_t> distances; ///< ACPI SLIT, by position in Topology::nodes; or empty
  Claims claims;
};

/// A cache of CPUs; in a MemoryCache, the level is unused and 0.
struct Cache {
  int level = 0;
  char type = 'u'; ///< u(nified), d(ata), i(nstruction)
  std::uint64_t size_bytes = 0;
  unsigned line_bytes = 0; ///< 0 if unknown
  int ways = 0;            ///< 0 if unknown, -1 if fully associative
  std::vector<int> cpus;   ///< that share it
};

/// Near memory that caches a node (Optane memory mode, or HBM as a cache).
struct MemoryCache {
  int node = 0;
  Cache cache;
};

struct Cpu {
  int id = 0;
  int core = 0;        ///< number among all cores of the machine
  int package = 0;     ///< as the system numbers it; 0 where it does not say
  bool usable = false; ///< by this process; in a file, by the process that wrote it
};

struct Topology {
  std::string processor; ///< model name, empty if unknown
  std::string kernel;    ///< "Linux 6.1.0", empty if unknown
  std::vector<Node> nodes;
  std::vector<Cache> caches;
  std::vector<MemoryCache> memory_caches;
  std::vector<Cpu> cpus;
};

/// Discovers this machine (`xml_path` is null) or reads a description of another one.
Result<Topology> discover(const char* xml_path);

/// The same machine as hwloc describes it in XML, with all names that hwloc knows.
Result<std::string> describe_as_xml(const char* xml_path);

} // namespace nearfar::topo
