#include "alloc/node_policy.hpp"

#include <algorithm>
#include <bit>

#include "os/address_space.hpp"

namespace nearfar::alloc {

namespace {

unsigned total_weight(const NodePolicy& policy) {
  unsigned total = 0;
  for (const std::uint8_t weight : policy.weights)
    total += weight;
  return total;
}

/// Whether the kernel's weights have the proportions of the tier's.
bool kernel_has_weights(const NodePolicy& policy) {
  const int first = std::countr_zero(policy.nodes);
  const unsigned first_weight = os::interleave_weight(first);
  if (first_weight == 0) return false;
  for (unsigned long rest = policy.nodes & (policy.nodes - 1); rest != 0; rest &= rest - 1) {
    const int node = std::countr_zero(rest);
    if (os::interleave_weight(node) * policy.weights[first] != first_weight * policy.weights[node])
      return false;
  }
  return true;
}

/// Pages of all nodes' stripes together: half as many turns as the square root of the range's pages.
std::size_t turn_pages(std::size_t pages, unsigned total) {
  const int log2 = static_cast<int>(std::bit_width(std::max<std::size_t>(pages, 1))) - 1;
  const std::size_t turns = std::size_t{1} << std::max(log2 / 2 - 1, 0);
  return (pages / turns + total - 1) / total * total;
}

} // namespace

bool is_striped(const NodePolicy& policy) {
  return policy.has_weights && !kernel_has_weights(policy);
}

Stripe stripe_at(const NodePolicy& policy, std::uintptr_t begin, std::uintptr_t end,
                 std::uintptr_t at) {
  const unsigned total = total_weight(policy);
  const std::size_t pages = (end - begin) / os::page_bytes;
  const std::size_t turn = std::max<std::size_t>(turn_pages(pages, total), total);
  const std::size_t page = (at - begin) / os::page_bytes;
  const std::size_t turn_begin = page / turn * turn;
  const std::size_t length = std::min(turn, pages - turn_begin);
  unsigned weight = 0;
  for (unsigned long rest = policy.nodes; rest != 0; rest &= rest - 1) {
    const int node = std::countr_zero(rest);
    weight += policy.weights[node];
    const std::size_t stop = turn_begin + (length * weight + total / 2) / total;
    if (page < stop) return {begin + stop * os::page_bytes, node};
  }
  return {end, std::countr_zero(policy.nodes)};
}

int set_node_policy(std::byte* at, std::size_t bytes, const NodePolicy& policy, bool move) {
  if (policy.policy == os::Policy::local) return 0;
  if (!is_striped(policy)) return os::set_policy(at, bytes, policy.policy, policy.nodes, move);
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  const std::uintptr_t end = begin + (bytes + os::page_bytes - 1) / os::page_bytes * os::page_bytes;
  for (std::uintptr_t from = begin; from < end;) {
    const Stripe stripe = stripe_at(policy, begin, end, from);
    const int code = os::set_policy(reinterpret_cast<std::byte*>(from), stripe.end - from,
                                    os::Policy::prefer, 1ul << stripe.node, move);
    if (code != 0) return code;
    from = stripe.end;
  }
  return 0;
}

} // namespace nearfar::alloc
