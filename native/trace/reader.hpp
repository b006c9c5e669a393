// Reads a trace block by block (docs/formats/trace.md), up to its end or its first damaged block.
//
// Untrusted      the file may have any bytes; each value is checked before it is used.
// Thread safety  one thread reads.
#pragma once

#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "os/stream.hpp"
#include "trace/block_file.hpp"
#include "trace/format.hpp"

namespace nearfar::trace {

class TraceReader {
public:
  /// Errors: not_found, no_permission; bad_input (no trace, another version).
  static Result<TraceReader> open(const char* path);
  /// Takes an open file over. Errors: bad_input.
  static Result<TraceReader> read(os::Stream file, const char* name);

  const Header& header() const { return header_; }

  /// The next block's records, valid until the next call; empty at the end.
  std::span<const Record> next();
  /// Goes forward to the block that holds record `number`, by the index where there is one, and
  /// reads the tables on the way; empty if the trace ends before it, or it was read already.
  std::span<const Record> seek(std::uint64_t number);
  /// Number of the first record of the block that next() returned.
  std::uint64_t first() const { return first_; }

  /// The tables read so far: complete after the last next().
  const Tables& tables() const { return tables_; }
  /// Counts up to the end of the block that next() returned.
  const Totals& totals() const { return totals_; }
  /// Records read or skipped so far.
  std::uint64_t records() const { return records_; }
  /// Likewise, with those that were left out of the file.
  std::uint64_t position() const { return records_ + totals_[Total::left_out]; }

  /// True once next() came to the end and the trace is whole.
  bool complete() const { return complete_; }
  /// After the end, if it is not complete: what is wrong and at which offset. Empty otherwise.
  const std::string& ending() const { return ending_; }

private:
  TraceReader(os::Stream file, Header header, std::uint64_t offset)
      : file_(std::move(file)), header_(std::move(header)), offset_(offset) {}

  bool block();
  bool take(const BlockHead& head);
  bool take_index(const BlockHead& head);
  bool stop(const char* why);
  std::vector<IndexEntry> read_index();
  void pass_by(const std::vector<IndexEntry>& index, std::uint64_t number);

  os::Stream file_;
  Header header_;
  Tables tables_;
  Totals totals_;
  std::vector<Record> decoded_;
  std::vector<std::uint8_t> plain_;
  std::vector<IndexEntry> seen_; ///< the blocks that were read, as an index would list them
  std::uint64_t offset_;
  std::uint64_t records_ = 0;
  std::uint64_t first_ = 0;
  bool ended_ = false;
  bool complete_ = false;
  std::string ending_;
};

} // namespace nearfar::trace
