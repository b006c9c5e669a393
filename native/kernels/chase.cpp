#include "kernels/chase.hpp"

#include <utility>

namespace nearfar::kernels {

const ChaseNode* link_cycle(std::byte* base, std::size_t block_bytes, std::uint32_t* order,
                            std::uint32_t blocks, Random& random) {
  for (std::uint32_t i = 0; i < blocks; ++i)
    order[i] = i;
  for (std::uint32_t i = blocks; i > 1; --i) // Fisher-Yates
    std::swap(order[i - 1], order[random.below(i)]);
  const auto node = [&](std::uint32_t rank) {
    return reinterpret_cast<ChaseNode*>(base + std::size_t{order[rank]} * block_bytes);
  };
  for (std::uint32_t rank = 0; rank < blocks; ++rank)
    *node(rank) = {node(rank + 1 == blocks ? 0 : rank + 1), rank};
  return node(0);
}

const ChaseNode* chase(const ChaseNode* from, std::size_t steps) {
  for (std::size_t i = steps / 16; i > 0; --i)
    asm volatile(".rept 16\n\tmovq (%0), %0\n\t.endr" : "+r"(from) : : "memory");
  return from;
}

} // namespace nearfar::kernels
