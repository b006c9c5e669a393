// The records in compressed parts of a perf.data file (perf record -z): one zstd stream.
//
// Memory         bounded by the window of the stream and the largest record, whatever it expands to.
// Thread safety  none.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "perf/fields.hpp"

struct ZSTD_DCtx_s;

namespace nearfar::perf {

class Decompressor {
public:
  /// Adds the payload of the next part. All records of the one before must have been taken.
  void feed(ByteSpan part);

  /// The next whole record with its header, valid until the next call; empty if there is none
  /// without another part. Errors: bad_input.
  Result<ByteSpan> record();

  /// Whether the parts so far end inside a record.
  bool holds_part_of_record() const { return taken_ != ready_; }

private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const;
  };

  /// False if all input is used up.
  Result<bool> expand();

  std::unique_ptr<ZSTD_DCtx_s, Free> context_;
  std::vector<std::uint8_t> part_;
  std::size_t used_ = 0; ///< of part_
  bool more_ = false;    ///< the context may hold output for which there was no room
  std::vector<std::uint8_t> plain_;
  std::size_t taken_ = 0; ///< of plain_: handed out
  std::size_t ready_ = 0; ///< of plain_: decompressed
};

} // namespace nearfar::perf
