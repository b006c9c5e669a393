// Reads perf.data files: those of `perf record`, and the stored output of `perf record -o -`, which
// has the format for pipes. Compressed records (-z) are decompressed.
//
// Input          untrusted: every offset and size is checked against the file; memory is bounded by
//                the size of the file's header and features.
// Not read       files of another byte order, and folders (perf record --threads): bad_input.
// Thread safety  none.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "os/stream.hpp"
#include "perf/decompressor.hpp"
#include "perf/features.hpp"
#include "perf/record.hpp"

namespace nearfar::perf {

struct EventRecord {
  std::size_t event = 0; ///< index in DataFile::events()
  Record record;
};

class DataFile {
public:
  /// Errors: not_found, no_permission, bad_input.
  static Result<DataFile> open(const char* path);
  static Result<DataFile> read(os::Stream stream, const char* name);

  /// The next record of the kernel in the order of the file, valid until the next call; nullptr at
  /// the end. Errors: bad_input (truncated, corrupted, an unknown event).
  Result<const EventRecord*> next();

  /// Of a pipe's file complete only at the end of its records.
  const std::vector<FileEvent>& events() const { return events_; }
  const FileFacts& facts() const { return facts_; }
  /// Rounds of perf over its rings that have ended before the record that was read last.
  std::uint64_t rounds() const { return rounds_; }
  /// False if perf was killed while it recorded: then records end where they were last written,
  /// and names and facts are missing.
  bool complete() const { return complete_; }

private:
  DataFile(os::Stream stream, const char* name) : stream_(std::move(stream)), name_(name) {}

  Status read_header();
  Status read_attrs(const FileHeader& header);
  Status read_features(const FileHeader& header);
  Status add_event(const perf_event_attr& attr, ByteSpan ids);
  Status start_data(const FileSection& data);

  Result<ByteSpan> next_bytes();
  Result<ByteSpan> read_record();
  Status use_file_record(ByteSpan record);
  Status read_attr_record(ByteSpan body);
  Status skip_payload(std::uint64_t bytes);
  Result<std::size_t> event_of(ByteSpan record) const;

  bool fits(const FileSection& section) const;
  bool read_at(std::uint64_t offset, void* to, std::size_t bytes);
  Result<std::vector<std::uint8_t>> read_section(const FileSection& section, const char* what);
  Error damaged(const char* problem) const;
  Error damaged_here(const char* problem) const;

  os::Stream stream_;
  std::string name_;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t offset_ = 0;        ///< of the next record
  std::uint64_t record_offset_ = 0; ///< of the record that was read last
  std::uint64_t end_ = 0;           ///< of the records
  bool complete_ = true;
  std::vector<FileEvent> events_;
  std::unordered_map<std::uint64_t, std::size_t> event_by_id_;
  FileFacts facts_;
  std::vector<std::uint8_t> buffer_;
  Decompressor decompressor_;
  std::uint64_t rounds_ = 0;
  EventRecord current_;
};

} // namespace nearfar::perf
