// Independent accesses: reads and writes in any mix, order and size.
//
// The first word of every line of the region contains a number that depends only on its position.
// Writes store the same number. The sum of all read numbers can therefore be computed without
// memory accesses, and reveals a read that was not executed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearfar::kernels {

enum class Order : unsigned char { sequential, strided, random };

struct AccessLoop {
  std::byte* base = nullptr;
  std::size_t blocks = 0;      ///< number of blocks in the region
  std::size_t block_lines = 1; ///< lines of a block, which one access touches in order
  Order order = Order::random;
  std::size_t stride = 1; ///< strided: distance of accesses in blocks
  unsigned reads = 1;     ///< number of reads in a group, which are followed by the writes
  unsigned writes = 0;
  bool nontemporal = false; ///< whether writes bypass the caches
  std::uint64_t state = 0;  ///< position in the order; any value is a valid start
};

/// Writes its number to every line of the region.
void fill_lines(std::byte* base, std::size_t lines);

/// Runs whole groups until at least `accesses` are executed. Advances `loop.state`. Returns the sum
/// of the read first words.
std::uint64_t run_accesses(AccessLoop& loop, std::size_t accesses);

/// The sum that run_accesses() must return for the same arguments; advances the state alike.
std::uint64_t expected_sum(AccessLoop& loop, std::size_t accesses);

} // namespace nearfar::kernels
