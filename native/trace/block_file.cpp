#include "trace/block_file.hpp"

#include <cstring>
#include <zlib.h>

#include "base/crc32c.hpp"

namespace nearfar::trace {

namespace {

constexpr std::size_t checked_bytes = offsetof(BlockHead, checksum);
constexpr int least_work = 1;
constexpr int memory_level = 8;

std::uint32_t checksum(const BlockHead& head, const std::uint8_t* payload) {
  return crc32c(payload, head.stored, crc32c(&head, checked_bytes));
}

/// Runs and frequencies alone: what patterns there were, prediction has taken out. 0 if it does not
/// get smaller than `room`.
std::size_t deflate_into(const Bytes& payload, std::uint8_t* to, std::size_t room) {
  z_stream stream{};
  if (deflateInit2(&stream, least_work, Z_DEFLATED, MAX_WBITS, memory_level, Z_RLE) != Z_OK)
    return 0;
  stream.next_in = const_cast<std::uint8_t*>(payload.data());
  stream.avail_in = static_cast<uInt>(payload.size());
  stream.next_out = to;
  stream.avail_out = static_cast<uInt>(room);
  const bool whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  const std::size_t bytes = stream.total_out;
  deflateEnd(&stream);
  return whole ? bytes : 0;
}

bool sane(const BlockHead& head) {
  return head.magic == block_magic && head.method <= 1 && head.reserved == 0 &&
         head.plain <= most_plain && head.stored <= head.plain && head.count <= most_entries &&
         (head.method == 1 || head.stored == head.plain);
}

} // namespace

void pack(BlockKind kind, std::uint32_t count, std::uint64_t first, const Bytes& payload,
          std::vector<std::uint8_t>& out) {
  BlockHead head;
  head.kind = static_cast<std::uint8_t>(kind);
  head.plain = static_cast<std::uint32_t>(payload.size());
  head.count = count;
  head.first_low = static_cast<std::uint32_t>(first);
  head.first_high = static_cast<std::uint32_t>(first >> 32);
  out.resize(sizeof head + payload.size());
  const std::size_t deflated = deflate_into(payload, out.data() + sizeof head, payload.size());
  head.method = deflated > 0;
  head.stored = deflated > 0 ? static_cast<std::uint32_t>(deflated) : head.plain;
  if (deflated == 0 && head.plain > 0)
    std::memcpy(out.data() + sizeof head, payload.data(), payload.size());
  out.resize(sizeof head + head.stored);
  head.checksum = checksum(head, out.data() + sizeof head);
  std::memcpy(out.data(), &head, sizeof head);
}

Got unpack(std::FILE* file, BlockHead& head, std::vector<std::uint8_t>& plain) {
  const std::size_t got = std::fread(&head, 1, sizeof head, file);
  if (got == 0) return Got::end;
  if (got != sizeof head) return Got::cut;
  if (!sane(head)) return Got::damaged;
  std::vector<std::uint8_t> stored(head.stored);
  if (std::fread(stored.data(), 1, head.stored, file) != head.stored) return Got::cut;
  if (checksum(head, stored.data()) != head.checksum) return Got::damaged;
  if (head.method == 0) {
    plain = std::move(stored);
    return Got::block;
  }
  plain.resize(head.plain);
  uLongf bytes = head.plain;
  const bool whole = uncompress(plain.data(), &bytes, stored.data(), head.stored) == Z_OK;
  return whole && bytes == head.plain ? Got::block : Got::damaged;
}

} // namespace nearfar::trace
