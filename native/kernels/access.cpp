#include "kernels/access.hpp"

#include <emmintrin.h>

#include "base/random.hpp"
#include "os/cpu.hpp"

namespace nearfar::kernels {

namespace {

/// Odd multiplier: different lines have different numbers.
std::uint64_t number_of(std::size_t line) { return (line + 1) * 0x9e3779b97f4a7c15u; }

/// Next block in the loop's order. The random one is a 64-bit linear congruential generator
/// (multiplier of Knuth's MMIX) whose high bits pick the block: two multiplications, no memory.
template <Order order>
std::size_t next_block(const AccessLoop& loop, std::uint64_t& state) {
  if constexpr (order == Order::random) {
    state = next_mmix(state);
    return scaled(state, loop.blocks);
  } else {
    const std::size_t block = state;
    state += order == Order::strided ? loop.stride : 1;
    // The next round of strides starts one block further, so that all blocks are visited.
    if (state >= loop.blocks) state = order == Order::strided ? state % loop.stride + 1 : 0;
    if (state >= loop.blocks) state = 0;
    return block;
  }
}

struct Touch {
  std::byte* base;
  bool nontemporal;

  std::uint64_t read(std::size_t line) const {
    std::uint64_t word;
    asm volatile("movq (%1), %0" : "=r"(word) : "r"(base + line * os::cache_line_bytes));
    return word;
  }

  void write(std::size_t line) const {
    auto* target = reinterpret_cast<__m128i*>(base + line * os::cache_line_bytes);
    const __m128i first = _mm_set_epi64x(0, static_cast<long long>(number_of(line)));
    const __m128i rest = _mm_setzero_si128();
    if (nontemporal) {
      _mm_stream_si128(target, first);
      for (int i = 1; i < 4; ++i)
        _mm_stream_si128(target + i, rest);
    } else {
      _mm_store_si128(target, first);
      for (int i = 1; i < 4; ++i)
        _mm_store_si128(target + i, rest);
    }
    asm volatile("" : : "r"(target) : "memory");
  }
};

/// The same walk without memory: reads yield what they must.
struct Foresee {
  std::uint64_t read(std::size_t line) const { return number_of(line); }
  void write(std::size_t) const {}
};

template <Order order, class Visitor>
std::uint64_t walk(AccessLoop& loop, std::size_t accesses, const Visitor& visitor) {
  const std::size_t lines = loop.block_lines;
  std::uint64_t state = loop.state;
  std::uint64_t sum = 0;
  const std::size_t group = std::size_t{loop.reads} + loop.writes;
  for (std::size_t done = 0; done < accesses; done += group) {
    for (unsigned r = 0; r < loop.reads; ++r) {
      const std::size_t first = next_block<order>(loop, state) * lines;
      for (std::size_t i = 0; i < lines; ++i)
        sum += visitor.read(first + i);
    }
    for (unsigned w = 0; w < loop.writes; ++w) {
      const std::size_t first = next_block<order>(loop, state) * lines;
      for (std::size_t i = 0; i < lines; ++i)
        visitor.write(first + i);
    }
  }
  loop.state = state;
  return sum;
}

template <class Visitor>
std::uint64_t walk_in_order(AccessLoop& loop, std::size_t accesses, const Visitor& visitor) {
  switch (loop.order) {
  case Order::sequential: return walk<Order::sequential>(loop, accesses, visitor);
  case Order::strided: return walk<Order::strided>(loop, accesses, visitor);
  case Order::random: return walk<Order::random>(loop, accesses, visitor);
  }
  return 0;
}

} // namespace

void fill_lines(std::byte* base, std::size_t lines) {
  for (std::size_t line = 0; line < lines; ++line)
    Touch{base, false}.write(line);
}

std::uint64_t run_accesses(AccessLoop& loop, std::size_t accesses) {
  const std::uint64_t sum = walk_in_order(loop, accesses, Touch{loop.base, loop.nontemporal});
  if (loop.nontemporal) _mm_sfence(); // the last stores are part of the work
  return sum;
}

std::uint64_t expected_sum(AccessLoop& loop, std::size_t accesses) {
  return walk_in_order(loop, accesses, Foresee{});
}

} // namespace nearfar::kernels
