// What one bank of a memory did.
#pragma once

#include <cstdint>

namespace nearfar::sim {

struct BankWork {
  std::uint32_t channel = 0;
  std::uint32_t rank = 0;  ///< of the channel
  std::uint32_t group = 0; ///< of the rank
  std::uint32_t bank = 0;  ///< of the group
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint64_t row_hits = 0;
  std::uint64_t activates = 0;
};

} // namespace nearfar::sim
