// Writes a trace, block by block (docs/formats/trace.md).
//
// Cut short      whole blocks stay readable if the writer is killed or the disk is full. The caller
//                calls flush() at least every second.
// Thread safety  one thread writes.
#pragma once

#include <optional>
#include <vector>

#include "base/result.hpp"
#include "trace/format.hpp"
#include "trace/records_block.hpp"
#include "trace/tables.hpp"

namespace nearfar::trace {

class TraceWriter {
public:
  /// Writes the header to an open file at its beginning; the file stays the caller's.
  TraceWriter(int fd, const Header& header);

  // Tables: each returns the number by which records name the entry.
  std::uint32_t module(const Module& module);
  std::uint32_t site(const Site& site);
  std::uint32_t object(const Object& object);
  std::uint16_t thread(std::uint32_t process);
  void died(std::uint32_t object, std::uint64_t instruction);
  /// The total that a site allocated; written once, at the end.
  void site_totals(std::uint32_t number, const Site& site);

  /// Its object and thread must have been written before.
  void record(const Record& record) {
    coder_.add(record, objects_);
    ++records_;
    if (coder_.count() == block_records) flush();
  }
  /// Number of the next record, counting those that the totals count as left out.
  std::uint64_t position() const { return records_ + totals[Total::left_out]; }

  /// Counts so far; they are stored with each block.
  Totals totals;

  /// Exit code of the program, as a shell reports it; finish() writes it.
  void set_exit_code(std::uint32_t code) { exit_code_ = code; }

  /// Writes what is buffered as blocks.
  void flush();
  /// Writes exit code, index and footer: the trace is complete. Errors: no_space, os_error.
  Status finish();

  /// The errno of the write that failed, 0 if none did; after it nothing more is written.
  int failed() const { return failed_; }
  std::uint64_t bytes() const { return offset_; }
  /// Records that reached the file.
  std::uint64_t written_records() const { return written_records_; }

private:
  struct Pending {
    Bytes bytes;
    std::uint32_t count = 0;
  };

  void put(BlockKind kind, std::uint32_t count, std::uint64_t first, const Bytes& payload);
  void put_table(BlockKind kind, Pending& pending, std::uint64_t entries);
  void added(Pending& pending);
  void flush_tables();
  void put_records();
  void write(const void* data, std::size_t bytes);

  int fd_;
  int failed_ = 0;
  std::uint64_t offset_ = 0;
  std::uint64_t records_ = 0;
  std::uint64_t written_records_ = 0;
  RecordsCoder coder_;
  std::vector<Object> objects_{1};
  std::uint32_t modules_count_ = 0;
  std::uint32_t sites_count_ = 1;
  std::uint32_t threads_count_ = 0;
  Object last_object_;
  Death last_death_;
  std::optional<std::uint32_t> exit_code_;
  Pending modules_, sites_, objects_pending_, deaths_, threads_, totals_;
  std::vector<IndexEntry> index_;
  std::vector<std::uint8_t> packed_;
};

} // namespace nearfar::trace
