// Which address bits select the channel, rank, bank group, bank, column and row.
//
// Thread safety  values.
#pragma once

#include <array>

#include "sim/device.hpp"

namespace nearfar::sim {

enum class AddressField : unsigned char { row, rank, bank, column, group, channel };

/// From the highest bits to the lowest. The row is first: it has all bits that remain.
using AddressMapping = std::array<AddressField, 6>;

/// Neighbors alternate between channels and groups, and a stream stays in its rows.
inline constexpr AddressMapping default_mapping{AddressField::row,   AddressField::rank,
                                                AddressField::bank,  AddressField::column,
                                                AddressField::group, AddressField::channel};

/// Reads a mapping as DRAMsim3 writes it, such as rorabacobgch: ro, ra, ba, co, bg and ch, each
/// once. Errors: bad_input.
Result<AddressMapping> parse_mapping(const char* text);

/// Where a line lies.
struct Place {
  std::uint32_t channel;
  std::uint32_t rank;  ///< of the channel
  std::uint32_t group; ///< of the rank
  std::uint32_t bank;  ///< of the channel, all ranks and groups counted through
  std::uint64_t row;
};

class Decoder {
public:
  /// In a memory without rows, each line is a row.
  explicit Decoder(const Shape& shape, const AddressMapping& mapping = default_mapping);

  Place place(std::uint64_t line) const {
    Place p;
    p.channel = channel_.of(line);
    p.rank = rank_.of(line);
    p.group = group_.of(line);
    p.bank = (((p.rank << groups_) | p.group) << banks_) | bank_.of(line);
    p.row = line >> row_shift_;
    return p;
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
