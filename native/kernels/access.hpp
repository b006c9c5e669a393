// Independent accesses: reads and writes in any mix, order and size.
//
// Every line of the region carries, in its first word, a number that depends on its place alone,
// and writes store that number again. So the sum of what was read can be computed without touching
// memory, and a loop that left a read out is found out.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearfar::kernels {

enum class Order : unsigned char { sequential, strided, random };

struct AccessLoop {
  std::byte* base = nullptr;
  std::size_t blocks = 0;      ///< in the region
  std::size_t block_lines = 1; ///< lines touched by one access, one after the other
  Order order = Order::random;
  std::size_t stride = 1; ///< strided: blocks from one access to the next
  unsigned reads = 1;     ///< in a group of reads, then writes
  unsigned writes = 0;
  bool nontemporal = false; ///< writes pass by the caches
  std::uint64_t state = 0;  ///< where the order stands; continue from it or start with any
};

/// Gives every line of the region its number.
void fill_lines(std::byte* base, std::size_t lines);

/// Runs whole groups until `accesses` are made (rounded up), moves `loop.state` on, and returns the
/// sum of the first words read.
std::uint64_t run_accesses(AccessLoop& loop, std::size_t accesses);

/// The sum that run_accesses() must return for the same loop and count; moves the state alike.
std::uint64_t expected_sum(AccessLoop& loop, std::size_t accesses);

} // namespace nearfar::kernels
