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

namespace {

/// Executes eight instructions.
template <Spacing spacing>
[[gnu::always_inline]] inline void execute_eight(std::uint64_t& a, std::uint64_t& b) {
  std::uint64_t product = 0, sum = 0, stored = 0;
  if constexpr (spacing == Spacing::integers)
    asm volatile("leaq 1(%0), %2\n\tshrq $3, %2\n\txorq %0, %2\n\timulq %1, %2\n\t"
                 "leaq 1(%1), %3\n\tmovq %2, %4\n\tcmpq %3, %1\n\tje 1f\n1:"
                 : "+r"(a), "+r"(b), "=&r"(product), "=&r"(sum), "=m"(stored)
                 :
                 : "cc");
  else if constexpr (spacing == Spacing::registers)
    asm volatile(".rept 4\n\tleaq 1(%0), %2\n\tleaq 1(%1), %3\n\t.endr"
                 : "+r"(a), "+r"(b), "=&r"(product), "=&r"(sum));
  else
    asm volatile(".rept 8\n\tnop\n\t.endr");
}

template <Spacing spacing, std::size_t instructions>
void run_spaced(const ChaseNode** at, std::size_t steps) {
  std::uint64_t a = 1, b = 3;
  for (std::size_t i = 0; i < steps; ++i)
#pragma GCC unroll 1
    for (std::size_t c = 0; c < max_chains; ++c) {
      const ChaseNode* node = at[c];
      asm volatile("movq (%0), %0" : "+r"(node) : : "memory");
      at[c] = node;
#pragma GCC unroll 16
      for (std::size_t k = 0; k < instructions; k += 8)
        execute_eight<spacing>(a, b);
    }
}

template <Spacing spacing, std::size_t... index>
constexpr std::array<ChainLoop, sizeof...(index)> spaced_loops(std::index_sequence<index...>) {
  return {run_spaced<spacing, (index + 1) * spacing_unit>...};
}

template <Spacing spacing>
ChainLoop spaced_loop(std::size_t instructions) {
  static constexpr auto loops =
      spaced_loops<spacing>(std::make_index_sequence<max_spacing_instructions / spacing_unit>());
  return loops[instructions / spacing_unit - 1];
}

} // namespace

void chase_spaced(const ChaseNode** at, Spacing spacing, std::size_t instructions,
                  std::size_t steps) {
  const ChainLoop loop = spacing == Spacing::integers ? spaced_loop<Spacing::integers>(instructions)
                         : spacing == Spacing::registers
                             ? spaced_loop<Spacing::registers>(instructions)
                             : spaced_loop<Spacing::empty>(instructions);
  loop(at, steps);
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
