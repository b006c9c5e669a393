// Blocks of records: columns of the values that were not predicted.
//
// Thread safety  none.
#pragma once

#include <array>
#include <span>
#include <unordered_map>
#include <vector>

#include "trace/format.hpp"
#include "trace/prediction.hpp"
#include "trace/varint.hpp"

namespace nearfar::trace {

inline constexpr std::size_t columns = 6;
enum Column : unsigned { heads, codes, lines, gaps, objects, extras };

/// Collects records of one block.
class RecordsCoder {
public:
  explicit RecordsCoder(unsigned line_bytes);

  /// `known` holds the record's object.
  void add(const Record& record, const std::vector<Object>& known);
  std::size_t count() const { return count_; }
  /// The payload, with the totals after the last record; starts anew.
  Bytes finish(const Totals& totals);

private:
  std::uint32_t context_of(const Record& record, const ThreadState& state, std::uint8_t& head);

  unsigned line_shift_;
  std::size_t count_ = 0;
  Prediction prediction_;
  struct Numbered {
    std::uint64_t code = 0;
    std::uint32_t number = 0;
  };
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_; ///< of codes
  std::array<Numbered, 256> recent_; ///< before it: some that were asked for last
  Bytes columns_[columns];
};

/// Reads a payload. False if it is invalid; the contents of `records` are then undefined.
bool decode_records(Cursor payload, std::uint32_t count, unsigned line_bytes,
                    const std::vector<Object>& known, std::size_t threads,
                    std::vector<Record>& records, Totals& totals);

} // namespace nearfar::trace
