#include "trace/reader.hpp"

#include <cerrno>
#include <cstring>

#include "base/crc32c.hpp"
#include "trace/records_block.hpp"
#include "trace/tables.hpp"

namespace nearfar::trace {

namespace {

constexpr std::uint32_t max_field_bytes = 1u << 20;
constexpr const char* next_step = "make one: nearfar trace -o T -- PROGRAM";

struct Start {
  char magic[8];
  std::uint32_t version;
  std::uint32_t bytes;
};
struct Footer {
  std::uint64_t index;
  char magic[8];
};

Error no_trace(const char* name) {
  return Error::make(Errc::bad_input, "'%s' is not a trace, or its header is damaged", name)
      .try_next("%s", next_step);
}

} // namespace

Result<TraceReader> TraceReader::open(const char* path) {
  Result<os::Stream> file = os::open_stream(path);
  if (!file) return file.error();
  return read(std::move(*file), path);
}

Result<TraceReader> TraceReader::read(os::Stream file, const char* name) {
  Start start;
  if (std::fread(&start, sizeof start, 1, file.get()) != 1 ||
      std::memcmp(start.magic, trace_magic, sizeof start.magic) != 0)
    return no_trace(name);
  if (start.version != trace_version)
    return Error::make(Errc::bad_input, "'%s' is a trace of version %u; this reads version %u",
                       name, start.version, trace_version)
        .try_next("trace the program again with this nearfar");
  if (start.bytes > max_field_bytes) return no_trace(name);
  std::vector<std::uint8_t> fields(start.bytes);
  std::uint32_t checksum = 0;
  if (std::fread(fields.data(), 1, start.bytes, file.get()) != start.bytes ||
      std::fread(&checksum, sizeof checksum, 1, file.get()) != 1 ||
      checksum != crc32c(fields.data(), fields.size(), crc32c(&start, sizeof start)))
    return no_trace(name);
  Header header;
  if (!decode_header(Cursor(fields.data(), fields.size()), header)) return no_trace(name);
  return TraceReader(std::move(file), std::move(header),
                     sizeof start + start.bytes + sizeof checksum);
}

bool TraceReader::stop(const char* why) {
  char text[160];
  std::snprintf(
      text, sizeof text, "the trace is %s at offset %llu; %llu records before that are used", why,
      static_cast<unsigned long long>(offset_), static_cast<unsigned long long>(records_));
  ending_ = text;
  ended_ = true;
  return false;
}

std::span<const Record> TraceReader::next() {
  decoded_.clear();
  while (!ended_ && decoded_.empty())
    if (!block()) return {};
  return decoded_;
}

/// One block, of whatever kind; false at the end.
bool TraceReader::block() {
  BlockHead head;
  switch (unpack(file_.get(), head, plain_)) {
  case Got::end:
  case Got::cut: return stop("cut short");
  case Got::damaged: return stop("damaged");
  case Got::block: break;
  }
  if (static_cast<BlockKind>(head.kind) == BlockKind::index) return take_index(head);
  if (!take(head)) {
    decoded_.clear();
    return stop("damaged");
  }
  seen_.push_back({offset_, head.first(), head.count, head.kind});
  offset_ += sizeof head + head.stored;
  return true;
}

bool TraceReader::take(const BlockHead& head) {
  const Cursor payload(plain_.data(), plain_.size());
  const auto kind = static_cast<BlockKind>(head.kind);
  if (kind != BlockKind::records)
    return decode_table(kind, payload, head.count, head.first(), tables_);
  if (head.first() != records_) return false;
  if (!decode_records(payload, head.count, header_.line_bytes, tables_.objects,
                      tables_.threads.size(), decoded_, totals_))
    return false;
  first_ = records_;
  records_ += head.count;
  return true;
}

/// The last block: it lists what was read, and the footer follows.
bool TraceReader::take_index(const BlockHead& head) {
  Footer footer;
  const bool lists =
      plain_.size() == seen_.size() * sizeof(IndexEntry) &&
      (plain_.empty() || std::memcmp(plain_.data(), seen_.data(), plain_.size()) == 0);
  if (!lists || head.count != seen_.size()) return stop("damaged");
  if (std::fread(&footer, sizeof footer, 1, file_.get()) != 1) return stop("cut short");
  if (footer.index != offset_ ||
      std::memcmp(footer.magic, footer_magic, sizeof footer.magic) != 0 ||
      std::fgetc(file_.get()) != EOF)
    return stop("damaged");
  ended_ = complete_ = true;
  return false;
}

/// The index that the footer refers to; empty if it is invalid. Changes the file's offset.
std::vector<IndexEntry> TraceReader::read_index() {
  Footer footer;
  BlockHead head;
  if (std::fseek(file_.get(), -static_cast<long>(sizeof footer), SEEK_END) != 0 ||
      std::fread(&footer, sizeof footer, 1, file_.get()) != 1 ||
      std::memcmp(footer.magic, footer_magic, sizeof footer.magic) != 0 ||
      std::fseek(file_.get(), static_cast<long>(footer.index), SEEK_SET) != 0 ||
      unpack(file_.get(), head, plain_) != Got::block ||
      static_cast<BlockKind>(head.kind) != BlockKind::index ||
      plain_.size() != head.count * sizeof(IndexEntry))
    return {};
  std::vector<IndexEntry> entries(head.count);
  if (head.count > 0) std::memcpy(entries.data(), plain_.data(), plain_.size());
  return entries;
}

/// Skips blocks of records that end before `number`, as far as the index lists them: they are
/// checked, and not decoded.
void TraceReader::pass_by(const std::vector<IndexEntry>& index, std::uint64_t number) {
  BlockHead head;
  std::fseek(file_.get(), static_cast<long>(offset_), SEEK_SET);
  for (std::size_t i = seen_.size(); i < index.size(); ++i) {
    const IndexEntry& entry = index[i];
    if (static_cast<BlockKind>(entry.kind) != BlockKind::records || entry.offset != offset_ ||
        entry.first != records_ || entry.count == 0 || entry.count > number - records_ ||
        read_stored(file_.get(), head, plain_) != Got::block)
      break;
    seen_.push_back(entry);
    records_ += entry.count;
    offset_ += sizeof head + head.stored;
  }
  std::fseek(file_.get(), static_cast<long>(offset_), SEEK_SET);
}

std::span<const Record> TraceReader::seek(std::uint64_t number) {
  decoded_.clear();
  if (ended_ || number < records_) return {};
  const std::vector<IndexEntry> index = read_index();
  do {
    decoded_.clear();
    pass_by(index, number);
    if (!block()) return {};
  } while (records_ <= number);
  return decoded_;
}

} // namespace nearfar::trace
