// The memory policy of a tier for ranges of addresses.
//
// Weights        of numa:0+1,weights=5:3: the kernel interleaves the pages if its own weights have
//                these proportions (Linux 6.9). They are the same for all processes, and only root
//                changes them. Otherwise a range is divided into stripes, one for each node in turns.
// Stripes        are separate mappings for the kernel, of which a process may have 65530. They grow
//                with the range: 8 pages of a small one, 2 MiB of one with 1 GiB.
// Freestanding   no exceptions, no C++ runtime; nothing allocates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "alloc/tier_options.hpp"

namespace nearfar::alloc {

/// Whether a range is divided into stripes.
bool is_striped(const NodePolicy& policy);

/// The stripe of [begin, end) that has the address `at`.
struct Stripe {
  std::uintptr_t end = 0;
  int node = 0;
};
Stripe stripe_at(const NodePolicy& policy, std::uintptr_t begin, std::uintptr_t end,
                 std::uintptr_t at);

/// Sets the policy of a range, in stripes if necessary; `move` brings pages along. An errno, 0 for
/// success. Without effect for Policy::local.
int set_node_policy(std::byte* at, std::size_t bytes, const NodePolicy& policy, bool move);

} // namespace nearfar::alloc
