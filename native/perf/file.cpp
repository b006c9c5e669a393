// The records of a perf.data file.
#include "perf/file.hpp"

#include <cstring>

namespace nearfar::perf {

namespace {

perf_event_header header_of(ByteSpan record) { return Fields(record).read<perf_event_header>(); }

ByteSpan body_of(ByteSpan record) { return record.subspan(sizeof(perf_event_header)); }

} // namespace

Result<const EventRecord*> DataFile::next() {
  for (;;) {
    Result<ByteSpan> bytes = next_bytes();
    if (!bytes) return bytes.error();
    if (bytes->empty()) return nullptr;
    if (header_of(*bytes).type >= first_file_record) {
      if (Status done = use_file_record(*bytes); !done) return damaged_here(done.error().what);
      continue;
    }
    Result<std::size_t> event = event_of(*bytes);
    if (!event) return event.error();
    Result<Record> record = decode(events_[*event].attr, *bytes);
    if (!record) return damaged_here(record.error().what);
    current_ = {*event, *record};
    return &current_;
  }
}

Result<ByteSpan> DataFile::next_bytes() {
  Result<ByteSpan> unpacked = decompressor_.record();
  if (!unpacked) return damaged_here(unpacked.error().what);
  if (unpacked->empty()) return read_record();
  // Compressed records in compressed records could contain themselves.
  if (header_of(*unpacked).type >= first_file_record)
    return damaged_here("a compressed record is not one of the kernel");
  return unpacked;
}

Result<ByteSpan> DataFile::read_record() {
  const std::uint64_t left = end_ - offset_;
  if (left == 0 && !decompressor_.holds_part_of_record()) return ByteSpan();
  record_offset_ = offset_;
  perf_event_header header{};
  if (left >= sizeof header && std::fread(&header, sizeof header, 1, stream_.get()) == 1) {
    if (header.size < sizeof header) return damaged_here("a record is smaller than its header");
    const std::size_t body = header.size - sizeof header;
    buffer_.resize(header.size);
    std::memcpy(buffer_.data(), &header, sizeof header);
    if (header.size <= left &&
        std::fread(buffer_.data() + sizeof header, 1, body, stream_.get()) == body) {
      offset_ += header.size;
      return ByteSpan(buffer_);
    }
  }
  if (complete_) return damaged_here("the file is truncated");
  offset_ = end_; // the record that perf was writing when it was killed
  return ByteSpan();
}

Status DataFile::use_file_record(ByteSpan record) {
  const perf_event_header header = header_of(record);
  Fields in(body_of(record));
  switch (static_cast<FileRecord>(header.type)) {
  case FileRecord::attribute: return read_attr_record(in.rest());
  case FileRecord::build_id: return read_build_id(header.misc, in.rest(), facts_);
  case FileRecord::feature: {
    const auto feature = static_cast<Feature>(in.u64());
    return read_feature(feature, in.rest(), events_, facts_);
  }
  case FileRecord::finished_round: ++rounds_; return Done{};
  case FileRecord::compressed: decompressor_.feed(in.rest()); break;
  case FileRecord::padded_compressed: {
    const std::uint64_t bytes = in.u64();
    decompressor_.feed(in.take(bytes));
    break;
  }
  case FileRecord::aux_trace: return skip_payload(in.u64());
  case FileRecord::tracing_data: return skip_payload(in.u32());
  default: return Done{};
  }
  if (!in.ok()) return Error::make(Errc::bad_input, "a compressed record is malformed");
  return Done{};
}

/// An attribute of the size that it says itself, then ids.
Status DataFile::read_attr_record(ByteSpan body) {
  const std::uint32_t size = read_attr(body).size;
  if (size < PERF_ATTR_SIZE_VER0 || size > body.size())
    return Error::make(Errc::bad_input, "an attribute has an invalid size of %u", size);
  return add_event(read_attr(body.first(size)), body.subspan(size));
}

/// Data that follows a record and is not part of its size.
Status DataFile::skip_payload(std::uint64_t bytes) {
  if (bytes > end_ - offset_ || fseeko(stream_.get(), static_cast<off_t>(bytes), SEEK_CUR) != 0)
    return Error::make(Errc::bad_input, "the data of a record ends after the file");
  offset_ += bytes;
  return Done{};
}

Result<std::size_t> DataFile::event_of(ByteSpan record) const {
  if (events_.empty()) return damaged_here("a record precedes all events");
  if (events_.size() == 1) return std::size_t{0};
  const std::uint64_t id = event_id(events_.front().attr, record).value_or(0);
  if (id == 0) return std::size_t{0}; // perf gives records that it makes itself no id
  const auto found = event_by_id_.find(id);
  if (found != event_by_id_.end()) return found->second;
  return damaged_here("a record is of an unknown event");
}

Error DataFile::damaged_here(const char* problem) const {
  return Error::make(Errc::bad_input, "'%s' is damaged at offset %llu: %s", name_.c_str(),
                     static_cast<unsigned long long>(record_offset_), problem)
      .try_next("copy or record it again");
}

} // namespace nearfar::perf
