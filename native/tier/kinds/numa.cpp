// numa:N: memory of one node.
#include <cstdio>
#include <cstdlib>

#include "tier/kinds.hpp"

namespace nearfar::tier {

namespace {

Status read_node(std::string_view argument, Spec& spec) {
  if (argument.empty() || argument.size() > 4 ||
      argument.find_first_not_of("0123456789") != std::string_view::npos)
    return refuse("not a NUMA node number", argument);
  spec.node = std::atoi(argument.data()); // what follows is a comma or the end
  return Done{};
}

Result<std::size_t> free_memory(const Spec& spec) {
  char path[80];
  std::snprintf(path, sizeof path, "/sys/devices/system/node/node%d/meminfo", spec.node);
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr)
    return Error::make(Errc::unsupported, "this machine has no NUMA node %d", spec.node)
        .try_next("`nearfar topo` lists the nodes that exist");
  char line[256];
  std::size_t kib = 0;
  while (std::fgets(line, sizeof line, file) != nullptr)
    if (std::sscanf(line, "Node %*d MemFree: %zu kB", &kib) == 1) break;
  std::fclose(file);
  return kib << 10;
}

Status bind(const Spec& spec, const os::Range& range) { return os::bind_to_node(range, spec.node); }

} // namespace

const Kind numa_kind = {
    .name = "numa", .form = "numa:N", .read = read_node, .capacity = free_memory, .bind = bind};

} // namespace nearfar::tier
