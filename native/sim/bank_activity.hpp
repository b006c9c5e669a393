// Accesses and activates of one bank.
#pragma once

#include <cstdint>

namespace nearfar::sim {

struct BankActivity {
  std::uint32_t channel = 0;
  std::uint32_t rank = 0;  ///< number in the channel
  std::uint32_t group = 0; ///< number in the rank
  std::uint32_t bank = 0;  ///< number in the group
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint64_t row_hits = 0;
  std::uint64_t activates = 0;
};

} // namespace nearfar::sim
