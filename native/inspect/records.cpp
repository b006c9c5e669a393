#include "inspect/records.hpp"

#include <algorithm>
#include <cinttypes>

#include "poolformat/record.hpp"

namespace nearfar::inspect {

namespace {

using poolformat::each_entry;
using poolformat::RecordEntry;
using poolformat::RecordHead;

/// Larger changes are not replayed: each replayed word costs some sixty bytes of memory.
constexpr Offset max_replayed_bytes = Offset{16} << 20;

class Ring {
public:
  Ring(const PoolView& view, const ObjectStore& store) : view_(view), store_(store) {}

  /// The record of that number, which never wraps around the end of the ring.
  bool fetch(std::uint64_t lsn, std::vector<std::byte>& record) const {
    const Offset at = lsn % store_.lines * line_bytes;
    const Offset ring = store_.lines * line_bytes;
    RecordHead head;
    if (!view_.read(store_.log + at, &head, sizeof head)) return false;
    if (head.lsn != lsn || head.bytes < sizeof head || head.bytes > std::min(ring - at, ring / 2))
      return false;
    record.resize(head.bytes);
    return view_.read(store_.log + at, record.data(), head.bytes) &&
           poolformat::record_crc(head, record.data() + sizeof head) == head.crc;
  }
  Offset offset_of(std::uint64_t lsn) const { return store_.log + lsn % store_.lines * line_bytes; }

private:
  const PoolView& view_;
  const ObjectStore& store_;
};

/// A word of which only `bytes` change.
void store_part(PatchedView& patched, Offset at, const std::byte* data, std::size_t bytes) {
  auto word = patched.number<std::uint64_t>(at);
  if (!word) { // the last bytes of the file
    const Offset back = 8 - bytes;
    word = patched.number<std::uint64_t>(at - back);
    if (!word) return;
    std::memcpy(reinterpret_cast<std::byte*>(&*word) + back, data, bytes);
    patched.store(at - back, *word);
    return;
  }
  std::memcpy(&*word, data, bytes);
  patched.store(at, *word);
}

void apply(const RecordEntry& entry, PatchedView& patched) {
  constexpr std::byte zeroes[8] = {};
  const std::uint64_t before = patched.number<std::uint64_t>(entry.offset).value_or(0);
  switch (entry.kind) {
  case RecordEntry::Kind::set_bits: patched.store(entry.offset, before | entry.operand()); return;
  case RecordEntry::Kind::clear_bits:
    patched.store(entry.offset, before & ~entry.operand());
    return;
  case RecordEntry::Kind::write:
  case RecordEntry::Kind::zero: break;
  }
  const Offset reach = entry.reach();
  for (Offset done = 0; done < reach; done += 8)
    store_part(patched, entry.offset + done,
               entry.kind == RecordEntry::Kind::zero ? zeroes : entry.data + done,
               std::min<Offset>(8, reach - done));
}

} // namespace

Records replay_records(const PoolView& view, const ObjectStore& store, PatchedView& patched,
                       Findings& findings) {
  Records records;
  const Ring ring(view, store);
  std::vector<std::byte> record;
  Offset room = max_replayed_bytes;
  for (std::uint64_t lsn = store.start; lsn - store.start <= store.lines && ring.fetch(lsn, record);
       lsn += (record.size() + line_bytes - 1) / line_bytes) {
    bool inside = true;
    Offset reach = 0;
    std::uint64_t entries = 0;
    const bool formed = each_entry(record.data(), record.size(), [&](const RecordEntry& entry) {
      const Offset bytes = entry.reach();
      inside = inside && bytes <= view.size() && entry.offset <= view.size() - bytes;
      reach += inside ? bytes : 0;
      ++entries;
    });
    if (!formed || !inside) {
      findings.damage(
          "log", ring.offset_of(lsn), "record %" PRIu64 " passes its checksum, but %s", lsn,
          formed ? "changes bytes outside of the pool" : "is not a sequence of entries");
      return records;
    }
    ++records.count;
    records.entries += entries;
    if (reach > room) records.replayed = false;
    if (!records.replayed) continue;
    room -= reach;
    each_entry(record.data(), record.size(),
               [&](const RecordEntry& entry) { apply(entry, patched); });
  }
  if (records.count != 0)
    findings.note("log", ring.offset_of(store.start),
                  "the redo log holds %" PRIu64 " records that were not written back yet",
                  records.count);
  return records;
}

} // namespace nearfar::inspect
