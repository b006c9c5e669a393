#include "alloc/residency.hpp"

#include <cerrno>
#include <cstring>

#include "alloc/diagnostics.hpp"
#include "os/address_space.hpp"
#include "os/numa.hpp"

namespace nearfar::alloc {

int find_residency(const void* ptr, std::size_t bytes, hm_pages& found) {
  found = {};
  found.page_bytes = os::page_bytes;
  if (ptr == nullptr || bytes == 0) {
    set_error(EINVAL, "invalid range: empty, or NULL");
    return -1;
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(ptr) / os::page_bytes;
  const auto end = (reinterpret_cast<std::uintptr_t>(ptr) + bytes - 1) / os::page_bytes + 1;
  constexpr std::size_t batch = 1024;
  int nodes[batch];
  for (std::uintptr_t page = begin; page < end; page += batch) {
    const std::size_t count = end - page < batch ? end - page : batch;
    const int code =
        os::locate_pages(reinterpret_cast<std::byte*>(page * os::page_bytes), count, nodes);
    if (code != 0) {
      set_error(code, "cannot find out where pages are: %s", std::strerror(code));
      return -1;
    }
    found.pages += count;
    for (std::size_t i = 0; i < count; ++i)
      ++(nodes[i] >= 0 && nodes[i] < HM_MAX_NODES ? found.on_node[nodes[i]] : found.absent);
  }
  return 0;
}

int migrate(TierHeap& tier, unsigned long nodes) {
  if (!tier.runs.backing().anonymous) {
    set_error(ENOTSUP, "tier %s is in a file or device: its pages cannot move to another node",
              tier.name());
    return -1;
  }
  // First, so that blocks allocated meanwhile are on the new nodes.
  const TierOptions before = tier.runs.set_policy(os::Policy::bind, nodes);
  const std::size_t bytes =
      tier.window().reserved ? tier.slot_bytes() : tier.runs.span_bytes_used();
  const int code = os::set_policy(tier.base(), bytes, os::Policy::bind, nodes, true);
  if (code == 0) return 0;
  tier.runs.restore_policy(before);
  set_error(code, "cannot move tier %s to nodes %#lx: %s", tier.name(), nodes, std::strerror(code));
  return -1;
}

} // namespace nearfar::alloc
