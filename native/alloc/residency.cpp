#include "alloc/residency.hpp"

#include <cerrno>
#include <cstring>

#include "alloc/tier_making.hpp"
#include "alloc/trouble.hpp"
#include "os/address_space.hpp"
#include "os/numa.hpp"

namespace nearfar::alloc {

int find_residency(const void* ptr, std::size_t bytes, hm_pages& found) {
  found = {};
  found.page_bytes = os::page_bytes;
  if (ptr == nullptr || bytes == 0) {
    report(EINVAL, "an empty range has no pages");
    return -1;
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(ptr) / os::page_bytes;
  const auto end = (reinterpret_cast<std::uintptr_t>(ptr) + bytes - 1) / os::page_bytes + 1;
  constexpr std::size_t most = 1024;
  int nodes[most];
  for (std::uintptr_t page = begin; page < end; page += most) {
    const std::size_t count = end - page < most ? end - page : most;
    const int code =
        os::locate_pages(reinterpret_cast<std::byte*>(page * os::page_bytes), count, nodes);
    if (code != 0) {
      report(code, "the kernel does not tell where pages are: %s", std::strerror(code));
      return -1;
    }
    found.pages += count;
    for (std::size_t i = 0; i < count; ++i)
      ++(nodes[i] >= 0 && nodes[i] < HM_MAX_NODES ? found.on_node[nodes[i]] : found.absent);
  }
  return 0;
}

int migrate(unsigned tier, unsigned long nodes) {
  Runs& runs = tiers[tier].runs;
  if (!runs.medium().anonymous) {
    report(ENOTSUP, "tier %s lies in a file or device: its pages have no other node",
           tiers[tier].name);
    return -1;
  }
  const Options before =
      runs.bind(os::Policy::bind, nodes); // first: blocks taken meanwhile go there
  const std::size_t bytes = geometry.reserved ? tier_span_bytes(tier) : runs.span_bytes_used();
  const int code = os::set_policy(tier_base(tier), bytes, os::Policy::bind, nodes, true);
  if (code == 0) return 0;
  runs.bind(before.policy, before.nodes);
  report(code, "the kernel does not move tier %s to nodes %#lx: %s", tiers[tier].name, nodes,
         std::strerror(code));
  return -1;
}

} // namespace nearfar::alloc
