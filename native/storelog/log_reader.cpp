#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/crc32c.hpp"
#include "storelog/log_file.hpp"

namespace nearfar::storelog {

namespace {

/// A larger size of a pool means that the file is damaged.
constexpr std::uint64_t largest_pool = std::uint64_t{1} << 40;

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

class LogReader {
public:
  LogReader(std::FILE* file, ReadLog& result, bool contents)
      : file_(file), result_(result), contents_(contents) {}

  Status header(const char* path);
  void chunks();
  void unwritten(const char* log);

private:
  bool records(std::size_t bytes);
  bool chunk(const ChunkHeader& header);
  bool record(const FileRecord& record, const char* data);
  bool event(const FileRecord& record, const char* data);
  bool stack(const FileRecord& record, const char* data);
  void settle();
  bool stop(const char* why) {
    char text[256];
    std::snprintf(text, sizeof text, "the log is %s at offset %ld", why, offset_);
    result_.ending = text;
    return false;
  }

  std::FILE* file_;
  ReadLog& result_;
  bool contents_;             ///< image and stored bytes are wanted
  std::uint64_t settled_ = 0; ///< events that are part of the image
  std::vector<char> payload_;
  long offset_ = sizeof(FileHeader);
};

Status LogReader::header(const char* path) {
  FileHeader header;
  if (std::fread(&header, sizeof header, 1, file_) != 1 ||
      std::memcmp(header.magic, log_magic, sizeof header.magic) != 0 ||
      header.checksum != crc32c(&header, 12))
    return Error::make(Errc::bad_input, "'%s' is not a log of stores", path)
        .try_next("record one: nearfar crash run");
  if (header.version != log_version)
    return Error::make(Errc::bad_input, "'%s' is a log of version %u; this reads version %u", path,
                       header.version, log_version)
        .try_next("record it again with this nearfar");
  return Done{};
}

void LogReader::chunks() {
  for (;;) {
    ChunkHeader header;
    const std::size_t got = std::fread(&header, 1, sizeof header, file_);
    if (result_.complete && got == 0) return;
    if (got != sizeof header) {
      stop("cut short");
      return;
    }
    if (!chunk(header)) return;
    offset_ += static_cast<long>(sizeof header + header.bytes);
  }
}

bool LogReader::chunk(const ChunkHeader& header) {
  if (header.bytes == 0 || header.bytes > (1u << 20)) return stop("damaged");
  payload_.resize(header.bytes);
  if (std::fread(payload_.data(), 1, header.bytes, file_) != header.bytes) return stop("cut short");
  if (crc32c(payload_.data(), header.bytes) != header.checksum) return stop("damaged");
  return records(header.bytes);
}

/// Records that the writer had not written when its process was killed.
void LogReader::unwritten(const char* log) {
  const std::unique_ptr<std::FILE, Close> file(
      std::fopen((std::string(log) + ".unwritten").c_str(), "rb"));
  const auto rest = std::make_unique<Unwritten>();
  if (file == nullptr || std::fread(rest.get(), sizeof *rest, 1, file.get()) != 1 ||
      rest->offset != static_cast<std::uint64_t>(offset_) || rest->bytes > sizeof rest->records)
    return;
  payload_.assign(rest->records, rest->records + rest->bytes);
  records(rest->bytes);
}

bool LogReader::records(std::size_t bytes) {
  for (std::size_t at = 0; at < bytes;) {
    FileRecord next;
    if (bytes - at < sizeof next) return stop("damaged");
    std::memcpy(&next, payload_.data() + at, sizeof next);
    at += sizeof next;
    const std::size_t data = (std::size_t{next.data_bytes} + 7) / 8 * 8;
    if (bytes - at < data) return stop("damaged");
    if (!record(next, payload_.data() + at)) return false;
    at += data;
  }
  return true;
}

bool LogReader::record(const FileRecord& record, const char* data) {
  Log& log = result_.log;
  switch (static_cast<Tag>(record.tag)) {
  case Tag::site:
    if (record.site != result_.sites.size() || record.bytes > result_.sites.size())
      return stop("damaged");
    result_.names.emplace_back(data, record.data_bytes);
    result_.sites.emplace_back(result_.names.back().c_str(), record.address);
    if (record.bytes > 0) {
      result_.callers.push_back(result_.sites[record.bytes - 1]);
      result_.sites.back() = result_.sites.back().called_from(result_.callers.back());
    }
    return true;
  case Tag::pool:
    if (record.address > largest_pool || log.pool_bytes != 0) return stop("damaged");
    log.pool_bytes = record.address;
    if (contents_) log.image.resize(log.pool_bytes);
    result_.pool_path.assign(data, record.data_bytes);
    return true;
  case Tag::image:
    if (record.address > log.pool_bytes || record.data_bytes > log.pool_bytes - record.address)
      return stop("damaged");
    if (contents_) std::memcpy(log.image.data() + record.address, data, record.data_bytes);
    return true;
  case Tag::last:
    if (record.address != settled_ + log.events.size()) return stop("damaged");
    result_.complete = true;
    return true;
  case Tag::created: settle(); return true;
  case Tag::unseen:
    result_.unseen.emplace_back(std::string(data, record.data_bytes), record.address);
    return true;
  case Tag::unseen_bytes: result_.unseen_bytes = record.address; return true;
  case Tag::uninstrumented: result_.uninstrumented = true; return true;
  case Tag::other_file: result_.other_files.emplace_back(data, record.data_bytes); return true;
  case Tag::stack: return stack(record, data) || stop("damaged");
  case Tag::failed:
    return stop(("incomplete (" + std::string(data, record.data_bytes) + ")").c_str());
  }
  return event(record, data);
}

bool LogReader::stack(const FileRecord& record, const char* data) {
  if (record.site >= result_.sites.size()) return false;
  result_.stacks.resize(result_.sites.size());
  std::vector<Site>& calls = result_.stacks[record.site];
  for (std::uint32_t at = 0; at + 4 <= record.data_bytes; at += 4) {
    std::uint32_t number;
    std::memcpy(&number, data + at, sizeof number);
    if (number >= result_.sites.size()) return false;
    calls.push_back(result_.sites[number]);
  }
  return true;
}

/// Makes the events so far a part of the image.
void LogReader::settle() {
  Log& log = result_.log;
  for (const Event& event : log.events)
    if (contents_ && stores(event))
      std::memcpy(log.image.data() + event.address, log.data.data() + event.data, event.bytes);
  settled_ += log.events.size();
  log.events.clear();
  log.data.clear();
}

bool LogReader::event(const FileRecord& record, const char* data) {
  Log& log = result_.log;
  if (record.tag < static_cast<int>(EventKind::store) ||
      record.tag > static_cast<int>(EventKind::load) || record.site >= result_.sites.size() ||
      record.host >= hosts)
    return stop("damaged");
  const auto kind = static_cast<EventKind>(record.tag);
  const bool stores = kind == EventKind::store || kind == EventKind::nt_store;
  if (has_range(kind) && (record.bytes == 0 || record.address > log.pool_bytes ||
                          record.bytes > log.pool_bytes - record.address))
    return stop("damaged");
  if (stores && record.data_bytes != record.bytes) return stop("damaged");
  log.events.push_back({kind, record.thread, record.bytes, record.address, log.data.size(),
                        result_.sites[record.site], record.host});
  if (stores && contents_) {
    const auto* bytes = reinterpret_cast<const std::byte*>(data);
    log.data.insert(log.data.end(), bytes, bytes + record.bytes);
  }
  return true;
}

} // namespace

Result<ReadLog> read_log(const char* path, bool contents) {
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path, "rb"));
  if (file == nullptr)
    return Error::make(Errc::not_found, "cannot open the log '%s': %s", path, std::strerror(errno))
        .try_next("record one: nearfar crash run");
  ReadLog result;
  LogReader reader(file.get(), result, contents);
  if (Status read = reader.header(path); !read) return read.error();
  reader.chunks();
  if (!result.complete) reader.unwritten(path);
  return result;
}

} // namespace nearfar::storelog
