// The reader of traces, on blocks whose heads and checksums are right and whose contents are the
// input; and on the input as it is.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "fuzz_target.hpp"
#include "trace/block_file.hpp"
#include "trace/reader.hpp"
#include "trace/tables.hpp"
#include "trace/writer.hpp"

#include "base/crc32c.hpp"

using namespace nearfar::trace;

namespace {

/// A header that is right, then blocks cut out of the input.
std::vector<std::uint8_t> as_trace(const std::uint8_t* data, std::size_t size) {
  Bytes fields = encode_header({64, After::llc, {}});
  Bytes head;
  const auto bytes = static_cast<std::uint32_t>(fields.size());
  head.raw(trace_magic, 8);
  head.raw(&trace_version, sizeof trace_version);
  head.raw(&bytes, sizeof bytes);
  head.raw(fields.data(), fields.size());
  const std::uint32_t checksum = nearfar::crc32c(head.data(), head.size());
  head.raw(&checksum, sizeof checksum);
  std::vector<std::uint8_t> file(head.data(), head.data() + head.size());
  std::vector<std::uint8_t> packed;
  // All kinds, and one that does not exist. Sites and objects begin at 1.
  constexpr unsigned block_kinds = static_cast<unsigned>(last_block_kind) + 1;
  std::uint64_t firsts[block_kinds + 1] = {};
  firsts[static_cast<unsigned>(BlockKind::sites)] = 1;
  firsts[static_cast<unsigned>(BlockKind::objects)] = 1;
  while (size >= 3) {
    const unsigned kind = data[0] % (block_kinds + 1);
    const std::uint32_t count = data[1] % 16;
    const std::size_t length = data[2] < size - 3 ? data[2] : size - 3;
    Bytes payload;
    payload.raw(data + 3, length);
    pack(static_cast<BlockKind>(kind), count, firsts[kind], payload, packed);
    firsts[kind] += count;
    file.insert(file.end(), packed.begin(), packed.end());
    data += 3 + length;
    size -= 3 + length;
  }
  return file;
}

void read(std::vector<std::uint8_t> bytes) {
  if (bytes.empty()) return;
  nearfar::Result<TraceReader> reader =
      TraceReader::read(nearfar::os::Stream(fmemopen(bytes.data(), bytes.size(), "rb")), "input");
  if (!reader) return;
  for (auto part = reader->next(); !part.empty(); part = reader->next())
    for (const Record& record : part)
      if (record.object >= reader->tables().objects.size() ||
          record.thread >= reader->tables().threads.size() ||
          reader->tables().objects[record.object].site >= reader->tables().sites.size())
        std::abort();
  if (reader->complete() != reader->ending().empty()) std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read(as_trace(data, size));
  read({data, data + size});
  return 0;
}
