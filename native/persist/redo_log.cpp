#include "persist/redo_log.hpp"

#include <algorithm>

namespace nearfar::persist {

namespace {

constexpr std::uint64_t line_bytes = os::cache_line_bytes;

RecordHead head_of(const std::byte* record) {
  RecordHead head;
  std::memcpy(&head, record, sizeof head);
  return head;
}

void change(std::byte* at, const Entry& entry) {
  switch (entry.kind) {
  case Entry::Kind::write:
    if (entry.bytes == 8 &&
        entry.offset % 8 == 0) { // in one piece, for readers that look without a guard
      __atomic_store_n(reinterpret_cast<std::uint64_t*>(at), entry.operand(), __ATOMIC_RELEASE);
    } else {
      std::memcpy(at, entry.data, entry.bytes);
    }
    return;
  case Entry::Kind::set_bits: *reinterpret_cast<std::uint64_t*>(at) |= entry.operand(); return;
  case Entry::Kind::clear_bits: *reinterpret_cast<std::uint64_t*>(at) &= ~entry.operand(); return;
  case Entry::Kind::zero: std::memset(at, 0, entry.operand()); return;
  }
}

} // namespace

const std::byte* RedoLog::fetch(std::uint64_t lsn) {
  const std::byte* record = line(lsn);
  const RecordHead head = head_of(record);
  const std::size_t ring = place_.count * line_bytes;
  if (head.lsn != lsn || head.bytes < sizeof head || head.bytes > largest_record()) return nullptr;
  const auto straight = static_cast<std::size_t>(place_.lines + ring - record);
  if (head.bytes > straight) {
    unwrapped_.assign(record, record + straight);
    unwrapped_.insert(unwrapped_.end(), place_.lines, place_.lines + (head.bytes - straight));
    record = unwrapped_.data();
  }
  return record_crc(record, head.bytes) == head.crc ? record : nullptr;
}

void RedoLog::copy_in(const std::byte* record, std::uint32_t bytes) {
  std::byte* to = line(tail_);
  const auto straight = static_cast<std::size_t>(place_.lines + place_.count * line_bytes - to);
  const std::size_t first = std::min<std::size_t>(bytes, straight);
  std::memcpy(to, record, first);
  storelog::store(to, first);
  write_back_->flush(to, first);
  if (first == bytes) return;
  std::memcpy(place_.lines, record + first, bytes - first);
  storelog::store(place_.lines, bytes - first);
  write_back_->flush(place_.lines, bytes - first);
}

Status RedoLog::commit(std::byte* record, std::uint32_t bytes, const Site* sites) {
  if (bytes > largest_record())
    return Error::make(Errc::no_space,
                       "a transaction of %u bytes does not fit the log, which takes %u", bytes,
                       largest_record())
        .try_next("part the transaction, or make the pool with a larger log");
  const std::uint64_t lines = lines_of(bytes);
  if (tail_ + lines - start() > place_.count) // an eighth at a time: many flushes to a fence
    advance(std::min(tail_, std::max(tail_ + lines - place_.count, start() + place_.count / 8)));
  RecordHead head{tail_, bytes, 0};
  std::memcpy(record, &head, sizeof head);
  head.crc = record_crc(record, bytes);
  std::memcpy(record, &head, sizeof head);
  copy_in(record, bytes);
  write_back_->fence();
  tail_ += lines;
  apply(record, bytes, sites);
  if (!write_back_->failed()) return Done{};
  return Error::make(Errc::os_error,
                     "writing the pool back to its file failed: the transaction may not be durable")
      .try_next("look at the kernel's log for errors of the device");
}

void RedoLog::apply(const std::byte* record, std::uint32_t bytes, const Site* sites) {
  each_entry(record, bytes, [&](const Entry& entry) {
    std::byte* at = place_.base + entry.offset;
    change(at, entry);
    storelog::store(at, entry.reach(), sites != nullptr ? *sites++ : Site::current());
  });
}

/// Remembers the lines that a record changes.
void RedoLog::note(const std::byte* record, std::uint32_t bytes) {
  each_entry(record, bytes, [&](const Entry& entry) {
    const std::uint64_t end = entry.offset + entry.reach();
    for (std::uint64_t at = entry.offset & ~(line_bytes - 1); at < end; at += line_bytes)
      dirty_.push_back(at);
  });
}

/// Writes back what the records before `to` or a little behind changed, and moves `start` there.
void RedoLog::advance(std::uint64_t to) {
  std::uint64_t lsn = start();
  if (lsn == tail_) return;
  dirty_.clear();
  while (lsn < to) {
    const std::byte* record = fetch(lsn);
    if (record == nullptr) break; // cannot be: everything before the tail was written by commit()
    const std::uint32_t bytes = head_of(record).bytes;
    note(record, bytes);
    lsn += lines_of(bytes);
  }
  std::sort(dirty_.begin(), dirty_.end());
  dirty_.erase(std::unique(dirty_.begin(), dirty_.end()), dirty_.end());
  for (const std::uint64_t at : dirty_)
    write_back_->flush(place_.base + at, line_bytes);
  write_back_->fence();
  __atomic_store_n(place_.start, lsn, __ATOMIC_RELEASE);
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
    const bool formed = each_entry(record, bytes, [&](const Entry& entry) {
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
    if (tail_ - start() > place_.count) break; // the ring has no more
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
