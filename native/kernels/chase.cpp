#include "kernels/chase.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "os/tsc.hpp"

namespace nearfar::kernels {

const ChaseNode* link_cycle(std::byte* base, std::size_t block_bytes, std::uint32_t* order,
                            std::uint32_t blocks, Random& random) {
  for (std::uint32_t i = 0; i < blocks; ++i)
    order[i] = i;
  for (std::uint32_t i = blocks; i > 1; --i) // Fisher-Yates
    std::swap(order[i - 1], order[random.below(i)]);
  const std::size_t nodes = nodes_in(block_bytes);
  const auto node = [&](std::uint32_t place, std::size_t line) {
    std::byte* block = base + std::size_t{order[place]} * block_bytes;
    return reinterpret_cast<ChaseNode*>(block + line * os::cache_line_bytes);
  };
  std::uint64_t rank = 0;
  for (std::uint32_t place = 0; place < blocks; ++place)
    for (std::size_t line = 0; line < nodes; ++line, ++rank) {
      const bool last = line + 1 == nodes;
      const std::uint32_t next_place = place + 1 == blocks ? 0 : place + 1;
      *node(place, line) = {last ? node(next_place, 0) : node(place, line + 1), rank};
    }
  return node(0, 0);
}

const ChaseNode* chase(const ChaseNode* from, std::size_t steps) {
  for (std::size_t i = steps / 16; i > 0; --i)
    asm volatile(".rept 16\n\tmovq (%0), %0\n\t.endr" : "+r"(from) : : "memory");
  return from;
}

namespace {

template <std::size_t chains>
void run_chains(const ChaseNode** at, std::size_t steps) {
  std::array<const ChaseNode*, chains> node;
  std::copy_n(at, chains, node.begin());
  for (std::size_t i = 0; i < steps; ++i)
    for (std::size_t c = 0; c < chains; ++c)
      asm volatile("movq (%0), %0" : "+r"(node[c]) : : "memory");
  std::copy_n(node.begin(), chains, at);
}

using ChainLoop = void (*)(const ChaseNode**, std::size_t);

template <std::size_t... index>
constexpr std::array<ChainLoop, sizeof...(index)> chain_loops(std::index_sequence<index...>) {
  return {run_chains<index + 1>...};
}

} // namespace

void chase_side_by_side(const ChaseNode** at, std::size_t chains, std::size_t steps) {
  static constexpr auto loops = chain_loops(std::make_index_sequence<max_chains>());
  loops[chains - 1](at, steps);
}

const ChaseNode* chase_timing_each(const ChaseNode* from, std::size_t steps,
                                   std::uint64_t own_ticks, Histogram& ticks) {
  for (std::size_t i = 0; i < steps; ++i) {
    const std::uint64_t start = os::tsc_begin();
    asm volatile("movq (%0), %0" : "+r"(from) : : "memory");
    const std::uint64_t took = os::tsc_end() - start;
    ticks.record(took > own_ticks ? took - own_ticks : 0);
  }
  return from;
}

} // namespace nearfar::kernels
