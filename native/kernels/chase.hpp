// Dependent loads: the random pointer chase.
//
// Each block of the region holds, in its first 16 bytes, the address of the next block and its own
// rank in the cycle. The rank costs the timed loop nothing and proves afterwards that every load of
// it was made: after k steps from rank r the chase must stand at rank (r + k) mod blocks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random.hpp"

namespace nearfar::kernels {

struct ChaseNode {
  const ChaseNode* next;
  std::uint64_t rank;
};
inline constexpr std::size_t chase_bytes_per_step = sizeof(const ChaseNode*);

/// Links the first `blocks` blocks of `block_bytes` (>= 16) from `base` into one random cycle,
/// every cycle equally likely. `order` is scratch for `blocks` ranks. Returns the node of rank 0.
const ChaseNode* link_cycle(std::byte* base, std::size_t block_bytes, std::uint32_t* order,
                            std::uint32_t blocks, Random& random);

/// The timed loop: `steps` loads (rounded down to a multiple of 16), each from the address the one
/// before it loaded. Returns the node reached. The loads are volatile assembly: no compiler drops
/// them.
const ChaseNode* chase(const ChaseNode* from, std::size_t steps);

} // namespace nearfar::kernels
