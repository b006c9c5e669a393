// Dependent loads: the random pointer chase.
//
// The nodes of a region form one cycle: blocks in random order, the nodes of a block in address
// order (after LENS, Wang et al., MICRO'20). Each line has one node. If blocks are smaller than
// lines, each block has one node, and a round visits each line several times, at random. A node
// holds the address of the next one and its own rank in the cycle. The timed loop does not read the
// rank. It proves afterwards that all loads were executed: after k steps from rank r, the chase has
// to be at rank (r + k) mod nodes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/histogram.hpp"
#include "base/random.hpp"
#include "os/cpu.hpp"

namespace nearfar::kernels {

struct ChaseNode {
  const ChaseNode* next;
  std::uint64_t rank;
};

/// Number of nodes in a block: one per line, at least one.
constexpr std::size_t nodes_in(std::size_t block_bytes) {
  return block_bytes < os::cache_line_bytes ? 1 : block_bytes / os::cache_line_bytes;
}

/// Links `blocks` blocks of `block_bytes` (16, 32 or a multiple of 64) from `base` into one cycle
/// over all their nodes; every order of the blocks is equally likely. `order` is scratch for
/// `blocks` numbers. Returns the node of rank 0.
const ChaseNode* link_cycle(std::byte* base, std::size_t block_bytes, std::uint32_t* order,
                            std::uint32_t blocks, Random& random);

/// The timed loop: `steps` loads (rounded down to a multiple of 16), each from the address that the
/// previous one loaded. Returns the last node. The loads are volatile assembly, which compilers do
/// not remove.
const ChaseNode* chase(const ChaseNode* from, std::size_t steps);

inline constexpr std::size_t max_chains = 16;

/// `chains` (1 to 16) independent chases in parallel, `steps` loads each; advances `at`.
void chase_side_by_side(const ChaseNode** at, std::size_t chains, std::size_t steps);

/// What a core executes between two loads of spaced chases.
enum class Spacing : unsigned char {
  integers,  ///< five of eight instructions write an integer register, one stores, two branch
  registers, ///< each instruction writes an integer register
  empty,     ///< instructions that only occupy the reorder buffer
};
/// Instructions of a spacing are multiples of this number, up to the maximum.
inline constexpr std::size_t spacing_unit = 32;
inline constexpr std::size_t max_spacing_instructions = 128;

/// As chase_side_by_side() with max_chains chases, and after each load `instructions` instructions
/// that wait for no load. The time of a load depends on how many of them a core overlaps.
void chase_spaced(const ChaseNode** at, Spacing spacing, std::size_t instructions,
                  std::size_t steps);

/// `steps` loads, each timed with the time stamp counter. Records ticks minus `own_ticks`. Returns
/// the last node.
const ChaseNode* chase_timing_each(const ChaseNode* from, std::size_t steps,
                                   std::uint64_t own_ticks, Histogram& ticks);

} // namespace nearfar::kernels
