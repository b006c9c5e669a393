// The heads of a pool and of its typed layer, and the tables of types and links.
#include "inspect/fuzz/made_store.hpp"

using namespace nearfar::inspect;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<std::byte> whole = made_store::sound();
  std::vector<std::byte> image = whole;
  nearfar::fuzz::Choices choices(data, size);
  const bool heads = choices.take<std::uint8_t>() % 2 == 0;
  if (heads) // behind either magic number
    made_store::lay(
        image, choices.take<std::uint8_t>() % 2 == 0 ? made_store::root + 8 : made_store::owner + 8,
        choices, 200);
  else
    made_store::lay(image, made_store::types, choices, 4096);
  made_store::look(image);
  return 0;
}
