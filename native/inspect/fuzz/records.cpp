// Records of the redo log; the checksum of the first is made right, so that its entries are read.
#include "inspect/fuzz/made_store.hpp"
#include "poolformat/record.hpp"

using namespace nearfar;
using namespace nearfar::inspect;

namespace {

/// A record's checksum is made right, or no input would ever pass it.
void fix_record_checksum(std::vector<std::byte>& image) {
  using namespace made_store;
  poolformat::RecordHead head;
  std::memcpy(&head, &image[log + line_bytes], sizeof head);
  head.lsn = 1;
  head.bytes = static_cast<std::uint32_t>(16 + head.bytes % (lines * line_bytes / 2 - 15));
  // Record 1 lies in line 1 and does not wrap.
  std::byte* record = &image[log + line_bytes];
  head.crc = poolformat::record_crc(head, record + sizeof head);
  std::memcpy(record, &head, sizeof head);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<std::byte> whole = made_store::sound();
  std::vector<std::byte> image = whole;
  nearfar::fuzz::Choices choices(data, size);
  const bool fixed = choices.take<std::uint8_t>() % 8 != 0;
  made_store::lay(image, made_store::log + line_bytes, choices,
                  (made_store::lines - 1) * line_bytes);
  if (fixed) fix_record_checksum(image);
  made_store::look(image);
  return 0;
}
