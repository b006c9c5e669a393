#include "persist/redo_log.hpp"
#include "persist/store_value.hpp"

#include <algorithm>

namespace nearfar::persist {

namespace {

constexpr std::uint64_t line_bytes = os::cache_line_bytes;

RecordHead head_of(const std::byte* record) {
  RecordHead head;
  std::memcpy(&head, record, sizeof head);
  return head;
}

} // namespace

void apply_entry(const RecordEntry& entry, std::byte* base) {
  std::byte* at = base + entry.offset;
  switch (entry.kind) {
  case RecordEntry::Kind::write: store_value(at, entry.data, entry.bytes); return;
  case RecordEntry::Kind::set_bits:
    *reinterpret_cast<std::uint64_t*>(at) |= entry.operand();
    return;
  case RecordEntry::Kind::clear_bits:
    *reinterpret_cast<std::uint64_t*>(at) &= ~entry.operand();
    return;
  case RecordEntry::Kind::zero: std::memset(at, 0, entry.operand()); return;
  }
}

const std::byte* RedoLog::fetch(std::uint64_t lsn) const {
  const std::byte* record = line(lsn);
  const RecordHead head = head_of(record);
  const std::uint64_t room = (place_.count - lsn % place_.count) * line_bytes;
  if (head.lsn != lsn || head.bytes < sizeof head ||
      head.bytes > std::min<std::uint64_t>(room, largest_record()))
    return nullptr;
  return poolformat::record_crc(head, record + sizeof head) == head.crc ? record : nullptr;
}

Status RedoLog::commit(std::byte* record, std::uint32_t bytes, const Site* sites) {
  if (bytes > largest_record())
    return Error::make(Errc::no_space,
                       "a transaction of %u bytes does not fit the log, which takes %u", bytes,
                       largest_record())
        .try_next("split the transaction, or create the pool with a larger log");
  if (tail_ % place_.count >= place_.count / 2) drain();
  RecordHead head{tail_, bytes, 0};
  head.crc = poolformat::record_crc(head, record + sizeof head);
  std::memcpy(record, &head, sizeof head);
  const std::uint64_t lines = lines_of(bytes);
  std::memset(record + bytes, 0, lines * line_bytes - bytes);
  write_back_->write_lines(line(tail_), record, lines * line_bytes);
  write_back_->fence();
  tail_ += lines;
  apply(record, bytes, sites);
  if (!write_back_->failed()) return Done{};
  return Error::make(Errc::os_error,
                     "writing the pool back to its file failed: the transaction may not be durable")
      .try_next("look at the kernel's log for errors of the device");
}

void RedoLog::apply(const std::byte* record, std::uint32_t bytes, const Site* sites) {
  poolformat::each_entry(record, bytes, [&](const RecordEntry& entry) {
    apply_entry(entry, place_.base);
    storelog::store(place_.base + entry.offset, entry.reach(),
                    sites != nullptr ? *sites++ : Site::current());
    dirty_.add(entry.offset, entry.reach());
  });
}

void RedoLog::flush_dirty() {
  if (dirty_.empty()) return;
  for (const std::uint64_t at : dirty_.one_a_unit(write_back_->unit_bytes()))
    write_back_->flush(place_.base + at, line_bytes);
  write_back_->fence();
  dirty_.clear();
}

void RedoLog::drain() {
  flush_dirty();
  tail_ = first_of_next_round();
  if (start() == tail_) return;
  __atomic_store_n(place_.start, tail_, __ATOMIC_RELEASE);
  storelog::store(place_.start, sizeof *place_.start);
  write_back_->flush(place_.start, sizeof *place_.start);
  write_back_->fence();
}

Result<std::size_t> RedoLog::recover() {
  std::size_t applied = 0;
  tail_ = start();
  while (const std::byte* record = fetch(tail_)) {
    const std::uint32_t bytes = head_of(record).bytes;
    bool inside = true;
    const bool formed = poolformat::each_entry(record, bytes, [&](const RecordEntry& entry) {
      const std::uint64_t reach = entry.reach();
      inside = inside && reach <= place_.pool_bytes && entry.offset <= place_.pool_bytes - reach;
    });
    if (!formed || !inside)
      return Error::make(Errc::bad_input, "record %llu of the log is damaged",
                         static_cast<unsigned long long>(tail_))
          .try_next("bring the pool back from a copy; `nearfar pool check` looks closer");
    apply(record, bytes, nullptr);
    tail_ += lines_of(bytes);
    ++applied;
    if (tail_ - start() > place_.count) break; // the log has no more
  }
  drain();
  return applied;
}

void RedoLog::scrub() {
  drain();
  const std::size_t bytes = place_.count * line_bytes;
  std::memset(place_.lines, 0, bytes);
  storelog::store(place_.lines, bytes);
  write_back_->flush(place_.lines, bytes);
  write_back_->fence();
}

} // namespace nearfar::persist
