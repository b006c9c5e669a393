// NUMA policies of ranges, and where pages are. System calls of the kernel, without libnuma.
//
// Errors         every int is an errno, 0 for success.
// Freestanding   no exceptions, no C++ runtime; nothing allocates.
#pragma once

#include <cstddef>

namespace nearfar::os {

inline constexpr int max_nodes = 64;

/// Nodes of new pages of a range.
enum class Policy : unsigned char {
  local,    ///< the node of the processor that touches them
  prefer,   ///< the nodes if they have room
  bind,     ///< the nodes alone
  weighted, ///< spread over the nodes by the kernel's weights (Linux 6.9)
};

/// Sets the policy; `move` brings pages along that are elsewhere. `nodes` has a bit for each node.
int set_policy(std::byte* at, std::size_t bytes, Policy policy, unsigned long nodes, bool move);

/// Asks for the node of each of `count` pages: its number, or -errno for a page that is not in
/// memory (-ENOENT, -EFAULT).
int locate_pages(const void* const* pages, std::size_t count, int* nodes);
/// The same for at most 1024 successive pages.
int locate_pages(const std::byte* first, std::size_t count, int* nodes);

/// Whether the page at an address is in memory and in this process' page table.
bool is_present(const std::byte* page);

/// Counts pages of a range that are in memory on another node than this one. An errno, 0 for
/// success.
int count_elsewhere(const std::byte* first, std::size_t bytes, int node, std::size_t& elsewhere);

/// Nodes with memory, a bit each; without NUMA in the kernel node 0.
unsigned long nodes_with_memory();
/// Nodes with processors, a bit each.
unsigned long nodes_with_processors();

/// The kernel's weight of a node for Policy::weighted; 0 if the kernel has none (before Linux 6.9).
unsigned interleave_weight(int node);

/// Bytes of a node that are free, and all it has. False if there is no such node.
struct NodeMemory {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
};
bool node_memory(int node, NodeMemory& memory);
/// Of all nodes of a bit mask; SIZE_MAX where it is unknown.
std::size_t free_bytes_of(unsigned long nodes);

} // namespace nearfar::os
