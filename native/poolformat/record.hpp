// One record of the redo log: the changes of a transaction, as bytes.
//
// Format         RecordHead, then entries; a record begins on a line (64 bytes) of the log. An
//                entry is a word, offset | kind << 48 | bytes << 52, then its data, padded to 8
//                bytes:
//                  write       `bytes` bytes, to be stored at the offset
//                  set_bits    a word, to be or-ed into the word at the offset
//                  clear_bits  a word whose bits are to be cleared there
//                  zero        a word: how many bytes at the offset are to be zeroed
//                Offsets count from the pool's start. Applying a record is idempotent.
// Validity       lsn is the number of the record's first line since the log was made, and crc the
//                CRC32C of lsn, bytes and entries: a torn or an older record is never taken.
// Version        StoreHead.magic (heads.hpp) stands for this format. A reader that does not know a
//                kind of entry takes its record as damaged, so a new kind requires another magic.
// Thread safety  values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/crc32c.hpp"

namespace nearfar::poolformat {

struct RecordHead {
  std::uint64_t lsn;
  std::uint32_t bytes; ///< of the whole record, head included
  std::uint32_t crc;
};
static_assert(sizeof(RecordHead) == 16);

/// CRC32C of a record: of its head but for `crc`, and of its entries.
inline std::uint32_t record_crc(const RecordHead& head, const std::byte* entries) {
  return crc32c(entries, head.bytes - sizeof head, crc32c(&head, offsetof(RecordHead, crc)));
}

struct RecordEntry {
  enum class Kind : std::uint8_t { write = 0, set_bits = 1, clear_bits = 2, zero = 3 };

  std::uint64_t offset = 0;
  Kind kind = Kind::write;
  std::uint32_t bytes = 0; ///< of `data`: what a write stores; 8, an operand, for other kinds
  const std::byte* data = nullptr;

  static constexpr std::uint32_t longest_write = 4088; ///< longer ones are parted
  static constexpr std::uint64_t offset_mask = (std::uint64_t{1} << 48) - 1;

  static std::uint64_t word(std::uint64_t offset, Kind kind, std::uint32_t bytes) {
    return offset | std::uint64_t{static_cast<std::uint8_t>(kind)} << 48 |
           std::uint64_t{bytes} << 52;
  }
  static constexpr std::size_t size(std::uint32_t bytes) { return 8 + ((bytes + 7u) & ~7u); }

  std::uint64_t operand() const {
    std::uint64_t value = 0;
    std::memcpy(&value, data, sizeof value);
    return value;
  }
  /// Bytes at the offset that applying it changes.
  std::uint64_t reach() const { return kind == Kind::zero ? operand() : bytes; }
};

/// Calls see(entry) for every entry of a record; false if an entry exceeds the record.
template <class See>
bool each_entry(const std::byte* record, std::size_t bytes, const See& see) {
  std::size_t at = sizeof(RecordHead);
  while (at < bytes) {
    if (bytes - at < 16) return false;
    std::uint64_t word = 0;
    std::memcpy(&word, record + at, sizeof word);
    RecordEntry entry;
    entry.offset = word & RecordEntry::offset_mask;
    entry.kind = static_cast<RecordEntry::Kind>(word >> 48 & 0xf);
    entry.bytes = static_cast<std::uint32_t>(word >> 52);
    entry.data = record + at + 8;
    const bool known = static_cast<unsigned>(entry.kind) <= 3 &&
                       (entry.kind == RecordEntry::Kind::write || entry.bytes == 8);
    if (!known || RecordEntry::size(entry.bytes) > bytes - at) return false;
    see(entry);
    at += RecordEntry::size(entry.bytes);
  }
  return true;
}

} // namespace nearfar::poolformat
