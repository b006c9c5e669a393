#include "trace/writer.hpp"

#include <cerrno>
#include <cstring>

#include "base/crc32c.hpp"
#include "os/file.hpp"
#include "trace/block_file.hpp"

namespace nearfar::trace {

namespace {

constexpr std::uint32_t table_entries = 1u << 16; ///< after which a table becomes a block
constexpr std::size_t table_bytes = max_plain / 4;

} // namespace

TraceWriter::TraceWriter(int fd, const Header& header) : fd_(fd), coder_(header.line_bytes) {
  const Bytes fields = encode_header(header);
  Bytes out;
  const auto bytes = static_cast<std::uint32_t>(fields.size());
  out.raw(trace_magic, 8);
  out.raw(&trace_version, sizeof trace_version);
  out.raw(&bytes, sizeof bytes);
  out.raw(fields.data(), fields.size());
  const std::uint32_t checksum = crc32c(out.data(), out.size());
  out.raw(&checksum, sizeof checksum);
  write(out.data(), out.size());
}

void TraceWriter::write(const void* data, std::size_t bytes) {
  if (failed_ != 0) return;
  errno = 0;
  if (os::write_whole(fd_, data, bytes))
    offset_ += bytes;
  else
    failed_ = errno != 0 ? errno : EIO;
}

void TraceWriter::put(BlockKind kind, std::uint32_t count, std::uint64_t first,
                      const Bytes& payload) {
  pack(kind, count, first, payload, packed_);
  index_.push_back({offset_, first, count, static_cast<std::uint32_t>(kind)});
  write(packed_.data(), packed_.size());
}

/// `entries`: of the whole table, including those of this block.
void TraceWriter::put_table(BlockKind kind, Pending& pending, std::uint64_t entries) {
  if (pending.count == 0) return;
  put(kind, pending.count, entries - pending.count, pending.bytes);
  pending.bytes.clear();
  pending.count = 0;
}

void TraceWriter::added(Pending& pending) {
  if (++pending.count == table_entries || pending.bytes.size() > table_bytes) flush_tables();
}

void TraceWriter::flush_tables() {
  put_table(BlockKind::modules, modules_, modules_count_);
  put_table(BlockKind::sites, sites_, sites_count_);
  put_table(BlockKind::threads, threads_, threads_count_);
  put_table(BlockKind::objects, objects_pending_, objects_.size());
  put_table(BlockKind::deaths, deaths_, deaths_.count);
  put_table(BlockKind::site_totals, totals_, totals_.count);
  last_object_ = {};
  last_death_ = {};
}

std::uint32_t TraceWriter::module(const Module& module) {
  encode(modules_.bytes, module);
  ++modules_count_;
  added(modules_);
  return modules_count_ - 1;
}

std::uint32_t TraceWriter::site(const Site& site) {
  encode(sites_.bytes, site);
  ++sites_count_;
  added(sites_);
  return sites_count_ - 1;
}

std::uint32_t TraceWriter::object(const Object& object) {
  encode(objects_pending_.bytes, object, last_object_);
  last_object_ = object;
  objects_.push_back(object);
  added(objects_pending_);
  return static_cast<std::uint32_t>(objects_.size() - 1);
}

std::uint16_t TraceWriter::thread(std::uint32_t process) {
  threads_.bytes.number(process);
  ++threads_count_;
  added(threads_);
  return static_cast<std::uint16_t>(threads_count_ - 1);
}

void TraceWriter::died(std::uint32_t object, std::uint64_t instruction) {
  const Death death{object, position(), instruction};
  encode(deaths_.bytes, death, last_death_);
  last_death_ = death;
  added(deaths_);
}

void TraceWriter::site_totals(std::uint32_t number, const Site& site) {
  encode_site_totals(totals_.bytes, number, site);
  added(totals_);
}

/// The records since the last block, and the totals.
void TraceWriter::put_records() {
  const auto count = static_cast<std::uint32_t>(coder_.count());
  put(BlockKind::records, count, records_ - count, coder_.finish(totals));
  if (failed_ == 0) written_records_ = records_;
}

void TraceWriter::flush() {
  flush_tables();
  if (coder_.count() > 0) put_records();
}

Status TraceWriter::finish() {
  flush_tables();
  put_records(); // without records, too: totals count what happened after the last one
  if (exit_code_) {
    Bytes payload;
    payload.number(*exit_code_);
    put(BlockKind::exit_code, 1, 0, payload);
  }
  Bytes entries;
  entries.raw(index_.data(), index_.size() * sizeof(IndexEntry));
  const std::uint64_t at = offset_;
  put(BlockKind::index, static_cast<std::uint32_t>(index_.size()), 0, entries);
  write(&at, sizeof at);
  write(footer_magic, 8);
  if (failed_ == 0) return Done{};
  Error error =
      Error::make(failed_ == ENOSPC || failed_ == EDQUOT ? Errc::no_space : Errc::os_error,
                  "the trace could not be written to its end: %s", std::strerror(failed_));
  error.os_errno = failed_;
  error.try_next(
      "make room, or trace after a larger cache; `nearfar trace stats` reads what is there");
  return error;
}

} // namespace nearfar::trace
