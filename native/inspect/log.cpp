#include "inspect/log.hpp"

#include <algorithm>
#include <array>
#include <cinttypes>

#include "inspect/checksum.hpp"

namespace nearfar::inspect {

namespace {

constexpr const char* part = "lane";
constexpr unsigned operation_shift = 61;
constexpr Offset target_mask = (Offset{1} << operation_shift) - 1;
constexpr Offset word_entry_bytes = 16;
constexpr Offset buffer_head_bytes = 24; ///< target, checksum, size; the bytes follow

Offset aligned(Offset offset) { return (offset + line_bytes - 1) / line_bytes * line_bytes; }

Offset max_capacity(LogKind kind) {
  switch (kind) {
  case LogKind::internal: return internal_capacity;
  case LogKind::external: return external_capacity;
  case LogKind::undo: break;
  }
  return undo_capacity;
}

/// Reads a log and its extensions part by part.
class LogReader {
public:
  LogReader(Window& window, const Descriptor& descriptor, Extensions& seen, Findings& findings)
      : window_(window), descriptor_(descriptor), seen_(seen), findings_(findings) {}

  Log read(LogKind kind, Offset offset);

private:
  bool read_head(Offset offset, Offset most, Log& log, Offset& capacity, Offset& next);
  bool entries_of(Offset data, Offset capacity, Log& log);
  bool entry_at(Offset at, Offset room, Log& log, Offset& length);
  bool buffer_at(Offset at, Offset room, Log& log, Offset& length);
  bool buffer_sum_holds(Offset at, Offset length, std::uint64_t stored, const Log& log);
  bool accept(Offset at, Log& log, const LogEntry& entry);
  bool redo_sum_holds(const Log& log);
  Offset extension(const Log& log, Offset from, Offset next);

  Window& window_;
  const Descriptor& descriptor_;
  Extensions& seen_;
  Findings& findings_;
  Offset first_part_bytes_ = 0; ///< taken by entries of the first part
};

bool LogReader::read_head(Offset offset, Offset most, Log& log, Offset& capacity, Offset& next) {
  const std::byte* head = window_.at(offset, log_head_bytes);
  if (head == nullptr) {
    findings_.unreadable(part, offset, log_head_bytes);
    return false;
  }
  capacity = load<std::uint64_t>(head + log_at::capacity);
  next = load<std::uint64_t>(head + log_at::next);
  if (log.extensions.empty()) log.generation = load<std::uint64_t>(head + log_at::generation);
  if (capacity <= most) return true;
  findings_.damage(part, offset + log_at::capacity,
                   "a part of the %s log says it holds %" PRIu64
                   " bytes; there is room for %" PRIu64,
                   name(log.kind), capacity, most);
  return false;
}

bool LogReader::accept(Offset at, Log& log, const LogEntry& entry) {
  if (descriptor_.storable(entry.target, entry.bytes)) {
    log.entries.push_back(entry);
    return true;
  }
  findings_.damage(part, at,
                   "an entry of the %s log would store %" PRIu64 " bytes at %#" PRIx64
                   ", outside of heap and lanes",
                   name(log.kind), entry.bytes, entry.target);
  return false;
}

bool LogReader::buffer_sum_holds(Offset at, Offset length, std::uint64_t stored, const Log& log) {
  Fletcher64 sum;
  for (Offset done = 0; done < length;) {
    const std::size_t step = std::min<Offset>(length - done, Window::max_bytes);
    const std::byte* bytes = window_.at(at + done, step);
    if (bytes == nullptr) return false;
    if (done == 0) { // the checksum's own eight bytes count as zero
      sum.add({bytes, 8});
      sum.add_zeroes(8);
      sum.add({bytes + 16, step - 16});
    } else {
      sum.add({bytes, step});
    }
    done += step;
  }
  sum.add(std::as_bytes(std::span(&log.generation, 1)));
  return sum.sum() == stored;
}

/// A snapshot or a fill. An entry whose checksum fails is one of an earlier generation: the end.
bool LogReader::buffer_at(Offset at, Offset room, Log& log, Offset& length) {
  const std::byte* head = room < buffer_head_bytes ? nullptr : window_.at(at, buffer_head_bytes);
  const Offset size = head == nullptr ? 0 : load<std::uint64_t>(head + 16);
  if (head == nullptr || size > room - buffer_head_bytes ||
      aligned(buffer_head_bytes + size) > room) {
    findings_.damage(part, at, "an entry of %" PRIu64 " bytes leaves its %s log", size,
                     name(log.kind));
    return false;
  }
  const auto first = load<std::uint64_t>(head);
  const auto stored = load<std::uint64_t>(head + 8);
  length = aligned(buffer_head_bytes + size);
  if (!buffer_sum_holds(at, length, stored, log)) return false;
  const bool copies = first >> operation_shift == 6;
  return accept(at, log,
                {copies ? Operation::copy : Operation::fill, first & target_mask, size, 0,
                 at + buffer_head_bytes});
}

/// One entry; false at the end of the log, which may be damaged.
bool LogReader::entry_at(Offset at, Offset room, Log& log, Offset& length) {
  const std::byte* head = room < 8 ? nullptr : window_.at(at, 8);
  if (head == nullptr) return false;
  const auto first = load<std::uint64_t>(head);
  if (first == 0) return false;
  const std::uint64_t operation = first >> operation_shift;
  if (operation == 5 || operation == 6) return buffer_at(at, room, log, length);
  if (operation > 2) {
    findings_.damage(part, at, "an entry of the %s log has the unknown operation %" PRIu64,
                     name(log.kind), operation);
    return false;
  }
  const std::byte* entry = room < word_entry_bytes ? nullptr : window_.at(at, word_entry_bytes);
  if (entry == nullptr) {
    findings_.damage(part, at, "an entry leaves its %s log", name(log.kind));
    return false;
  }
  length = word_entry_bytes;
  return accept(at, log,
                {static_cast<Operation>(operation), first & target_mask, 8,
                 load<std::uint64_t>(entry + 8), 0});
}

bool LogReader::entries_of(Offset data, Offset capacity, Log& log) {
  Offset taken = 0;
  bool more = true;
  while (more && taken < capacity) {
    Offset length = 0;
    more = entry_at(data + taken, capacity - taken, log, length);
    if (more) taken += length;
  }
  if (log.extensions.empty()) first_part_bytes_ = taken;
  return more;
}

bool LogReader::redo_sum_holds(const Log& log) {
  const std::size_t bytes = log_head_bytes + std::min(first_part_bytes_, log.capacity);
  const std::byte* at = window_.at(log.offset, bytes);
  return at != nullptr && first_part_bytes_ != 0 &&
         checksum({at, bytes}, log_at::checksum) == load<std::uint64_t>(at);
}

/// Offset of the next part; 0 if there is none, or it is invalid.
Offset LogReader::extension(const Log& log, Offset from, Offset next) {
  if (next == 0) return 0;
  const Offset begin = aligned(next);
  if (log.kind == LogKind::internal)
    findings_.damage(part, from + log_at::next, "an internal log names an extension at %#" PRIx64,
                     next);
  else if (next > begin || !descriptor_.in_heap(next) ||
           begin + log_head_bytes > descriptor_.heap_end())
    findings_.damage(part, from + log_at::next,
                     "an extension of the %s log at %#" PRIx64 " lies outside of the heap",
                     name(log.kind), next);
  else if (!seen_.insert(begin).second)
    findings_.damage(part, from + log_at::next,
                     "the extension at %#" PRIx64 " belongs to two logs, or to one twice", begin);
  else
    return begin;
  return 0;
}

Log LogReader::read(LogKind kind, Offset offset) {
  Log log{kind, offset, 0, 0, {}, {}, false};
  Offset next = 0;
  if (!read_head(offset, max_capacity(kind), log, log.capacity, next)) return log;
  bool more = entries_of(offset + log_head_bytes, log.capacity, log);
  for (Offset at = extension(log, offset, next); at != 0;) {
    log.extensions.push_back(at);
    Offset capacity = 0;
    if (!read_head(at, descriptor_.heap_end() - at - log_head_bytes, log, capacity, next)) break;
    if (more) more = entries_of(at + log_head_bytes, capacity, log);
    at = extension(log, at, next);
  }
  log.pending = !log.entries.empty() && (kind == LogKind::undo || redo_sum_holds(log));
  return log;
}

std::uint64_t result_of(const LogEntry& entry, std::uint64_t before) {
  if (entry.operation == Operation::bit_and) return before & entry.value;
  if (entry.operation == Operation::bit_or) return before | entry.value;
  return entry.value;
}

/// Copies or fills by words; a last word that is not whole keeps its other bytes.
void apply_buffer(const LogEntry& entry, PatchedView& patched) {
  const std::uint64_t fill = patched.number<std::uint8_t>(entry.data).value_or(0);
  for (Offset done = 0; done < entry.bytes; done += 8) {
    const std::size_t step = std::min<Offset>(8, entry.bytes - done);
    std::uint64_t word = patched.number<std::uint64_t>(entry.target + done).value_or(0);
    if (entry.operation == Operation::fill)
      std::memset(&word, static_cast<int>(fill), step);
    else
      patched.read(entry.data + done, &word, step);
    patched.store(entry.target + done, word);
  }
}

} // namespace

const char* name(LogKind kind) {
  switch (kind) {
  case LogKind::internal: return "internal redo";
  case LogKind::external: return "external redo";
  case LogKind::undo: break;
  }
  return "undo";
}

Log read_log(Window& window, const Descriptor& descriptor, LogKind kind, Offset offset,
             Extensions& seen, Findings& findings) {
  return LogReader(window, descriptor, seen, findings).read(kind, offset);
}

bool apply(const Log& log, PatchedView& patched, Offset& room) {
  if (!log.pending) return true;
  for (const LogEntry& entry : log.entries) {
    if (entry.bytes > room) return false;
    room -= entry.bytes;
    if (entry.operation == Operation::fill || entry.operation == Operation::copy)
      apply_buffer(entry, patched);
    else if (const auto before = patched.number<std::uint64_t>(entry.target))
      patched.store(entry.target, result_of(entry, *before));
  }
  return true;
}

} // namespace nearfar::inspect
