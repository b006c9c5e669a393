// The parsers of the first two pages: kind of file, header, descriptor.
#include "inspect/header.hpp"
#include "inspect/descriptor.hpp"
#include "inspect/fuzz/parts.hpp"

using namespace nearfar::inspect;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  nearfar::fuzz::Choices choices(data, size);
  const auto where = choices.take<std::uint8_t>();
  const auto bytes = choices.take<std::uint32_t>();
  const Offset begin = where % 2 == 0 ? 0 : descriptor_at::begin;
  const fuzz::Padded view(choices, begin, bytes);
  Findings findings;
  identify(view);
  to_text(read_header(view, findings).uuid);
  const Descriptor descriptor = read_descriptor(view, findings);
  if (descriptor.usable && descriptor.heap_end() > bytes) std::abort();
  return 0;
}
