// The parser of logs, on bytes in which offsets of the log itself are likely.
#include "inspect/log.hpp"
#include "inspect/fuzz/parts.hpp"

using namespace nearfar::inspect;

namespace {

constexpr Offset log_at_offset = 8192;
constexpr Offset size_bytes = Offset{4} << 20;

Descriptor descriptor() {
  Descriptor d;
  d.lanes_offset = log_at_offset;
  d.lane_count = 1;
  d.heap_offset = log_at_offset + 4096; // extensions may lie in the input as well
  d.mapped_bytes = size_bytes;
  d.heap_bytes = size_bytes - d.heap_offset;
  d.usable = true;
  return d;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  nearfar::fuzz::Choices choices(data, size);
  const auto kind = static_cast<LogKind>(choices.take<std::uint8_t>() % 3);
  const fuzz::Padded view(choices, log_at_offset, size_bytes);
  const Descriptor place = descriptor();
  Window window(view);
  Extensions seen;
  Findings findings;
  const Log log = read_log(window, place, kind, log_at_offset, seen, findings);
  for (const LogEntry& entry : log.entries)
    if (!place.storable(entry.target, entry.bytes)) std::abort();
  PatchedView patched(view);
  Offset room = 1 << 16;
  apply(log, patched, room);
  return 0;
}
