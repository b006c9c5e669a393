#include "trace/block_file.hpp"

#include <cstring>
#include <memory>
#include <zstd.h>

#include "base/crc32c.hpp"

namespace nearfar::trace {

namespace {

constexpr std::size_t checked_bytes = offsetof(BlockHead, checksum);
constexpr int min_work = 1;

std::uint32_t checksum(const BlockHead& head, const std::uint8_t* payload) {
  return crc32c(payload, head.stored, crc32c(&head, checked_bytes));
}

/// 0 if it does not get smaller than `room`.
std::size_t compress_into(const Bytes& payload, std::uint8_t* to, std::size_t room) {
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  thread_local const std::unique_ptr<ZSTD_CCtx, Free> context(ZSTD_createCCtx());
  if (!context || room == 0) return 0;
  const std::size_t bytes =
      ZSTD_compressCCtx(context.get(), to, room, payload.data(), payload.size(), min_work);
  return ZSTD_isError(bytes) != 0 || bytes >= payload.size() ? 0 : bytes;
}

bool sane(const BlockHead& head) {
  return head.magic == block_magic && head.method <= 1 && head.reserved == 0 &&
         head.plain <= max_plain && head.stored <= head.plain && head.count <= max_entries &&
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
  const std::size_t compressed = compress_into(payload, out.data() + sizeof head, payload.size());
  head.method = compressed > 0;
  head.stored = compressed > 0 ? static_cast<std::uint32_t>(compressed) : head.plain;
  if (compressed == 0 && head.plain > 0)
    std::memcpy(out.data() + sizeof head, payload.data(), payload.size());
  out.resize(sizeof head + head.stored);
  head.checksum = checksum(head, out.data() + sizeof head);
  std::memcpy(out.data(), &head, sizeof head);
}

Got read_stored(std::FILE* file, BlockHead& head, std::vector<std::uint8_t>& stored) {
  const std::size_t got = std::fread(&head, 1, sizeof head, file);
  if (got == 0) return Got::end;
  if (got != sizeof head) return Got::cut;
  if (!sane(head)) return Got::damaged;
  stored.resize(head.stored);
  if (std::fread(stored.data(), 1, head.stored, file) != head.stored) return Got::cut;
  return checksum(head, stored.data()) == head.checksum ? Got::block : Got::damaged;
}

Got unpack(std::FILE* file, BlockHead& head, std::vector<std::uint8_t>& plain) {
  std::vector<std::uint8_t> stored;
  if (const Got got = read_stored(file, head, stored); got != Got::block) return got;
  if (head.method == 0) {
    plain = std::move(stored);
    return Got::block;
  }
  plain.resize(head.plain);
  const std::size_t bytes =
      ZSTD_decompress(plain.data(), plain.size(), stored.data(), stored.size()); // or an error
  return bytes == head.plain ? Got::block : Got::damaged;
}

} // namespace nearfar::trace
