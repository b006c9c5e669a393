// numa:N: memory of one node.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "os/process.hpp"
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
  char text[4096];
  if (!os::read_text(path, text, sizeof text))
    return Error::make(Errc::unsupported, "this machine has no NUMA node %d", spec.node)
        .try_next("`nearfar topo` lists the nodes that exist");
  const char* line = std::strstr(text, "MemFree:");
  std::size_t kib = 0;
  return line != nullptr && std::sscanf(line, "MemFree: %zu kB", &kib) == 1 ? kib << 10 : 0;
}

Status bind(const Spec& spec, const os::MappedRange& range) {
  return os::bind_to_node(range, spec.node);
}

} // namespace

const TierKind numa_kind = {
    .name = "numa", .form = "numa:N", .read = read_node, .capacity = free_memory, .bind = bind};

} // namespace nearfar::tier
