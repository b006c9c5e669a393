// Address mapping: the bits that select channel, rank, bank group, bank, column and row.
//
// Thread safety  values.
#pragma once

#include <array>

#include "sim/device.hpp"

namespace nearfar::sim {

enum class AddressField : unsigned char { row, rank, bank, column, group, channel };

/// Fields from the highest bits to the lowest. The row is first and takes all remaining bits.
using AddressMapping = std::array<AddressField, 6>;

/// Neighboring lines alternate between channels and groups. A stream stays in its open rows.
inline constexpr AddressMapping default_mapping{AddressField::row,   AddressField::rank,
                                                AddressField::bank,  AddressField::column,
                                                AddressField::group, AddressField::channel};

/// Parses a mapping in the notation of DRAMsim3, such as rorabacobgch: ro, ra, ba, co, bg and ch
/// once each. Errors: bad_input.
Result<AddressMapping> parse_mapping(const char* text);

/// The DRAM address of a line. A device has at most 2^16 banks; values of this size are passed in
/// registers.
struct DramAddress {
  std::uint16_t channel;
  std::uint16_t rank;  ///< number in the channel
  std::uint16_t group; ///< number in the rank
  std::uint16_t bank;  ///< number in the channel, over all ranks and groups
  std::uint64_t row;
};

class AddressDecoder {
public:
  /// Without rows in `organization`, each line is a row.
  explicit AddressDecoder(const Organization& organization,
                          const AddressMapping& mapping = default_mapping);

  DramAddress decode(std::uint64_t line) const {
    const std::uint32_t rank = rank_.of(line);
    const std::uint32_t group = group_.of(line);
    const std::uint32_t bank = (((rank << groups_) | group) << banks_) | bank_.of(line);
    return {static_cast<std::uint16_t>(channel_.of(line)), static_cast<std::uint16_t>(rank),
            static_cast<std::uint16_t>(group), static_cast<std::uint16_t>(bank),
            line >> row_shift_};
  }

private:
  struct Bits {
    unsigned shift = 0;
    std::uint32_t mask = 0;
    std::uint32_t of(std::uint64_t line) const {
      return static_cast<std::uint32_t>(line >> shift) & mask;
    }
  };

  Bits channel_, rank_, group_, bank_;
  unsigned groups_, banks_, row_shift_;
};

} // namespace nearfar::sim
