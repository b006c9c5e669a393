// The directory of chunks, and the heads and bitmaps of chunks.
#include "inspect/fuzz/made_store.hpp"

using namespace nearfar::inspect;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<std::byte> whole = made_store::sound();
  std::vector<std::byte> image = whole;
  nearfar::fuzz::Choices choices(data, size);
  if (choices.take<std::uint8_t>() % 4 == 0)
    made_store::lay(image, made_store::directory, choices, 4096);
  else
    made_store::lay(image, made_store::chunk, choices, 4096);
  made_store::look(image);
  return 0;
}
