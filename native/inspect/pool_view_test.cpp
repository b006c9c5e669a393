#include "inspect/pool_view.hpp"

#include <doctest/doctest.h>

using namespace nearfar::inspect;

namespace {

/// Counts what is read of it; every byte is the low one of its offset.
class Counted final : public PoolView {
public:
  Offset size() const override { return size_bytes; }
  bool read(Offset offset, void* to, std::size_t bytes) const override {
    if (offset > size_bytes || bytes > size_bytes - offset) return false;
    for (std::size_t i = 0; i < bytes; ++i)
      static_cast<std::byte*>(to)[i] = static_cast<std::byte>(offset + i);
    read_bytes += bytes;
    return true;
  }

  static constexpr Offset size_bytes = 1 << 20;
  mutable std::uint64_t read_bytes = 0;
};

} // namespace

TEST_CASE("a window yields the bytes that were asked for, and nothing behind the end") {
  const Counted view;
  Window window(view);
  for (const Offset offset : {Offset{0}, Offset{5000}, Offset{4999}, Offset{900'000}, Offset{3}}) {
    const std::byte* at = window.at(offset, 16);
    REQUIRE(at != nullptr);
    CHECK(at[0] == static_cast<std::byte>(offset));
    CHECK(at[15] == static_cast<std::byte>(offset + 15));
  }
  CHECK(window.at(Counted::size_bytes - 8, 8) != nullptr);
  CHECK(window.at(Counted::size_bytes - 8, 9) == nullptr);
  CHECK(window.at(~Offset{0} - 4, 8) == nullptr);
}

TEST_CASE("going through a view backward reads little more than all of it") {
  const Counted view;
  Window window(view);
  for (Offset left = Counted::size_bytes; left >= 64; left -= 64)
    REQUIRE(window.at(left - 64, 64) != nullptr);
  CHECK(view.read_bytes <= 2 * Counted::size_bytes);
}

TEST_CASE("stores into a patched view are seen by reads of any size, and stay there") {
  const Counted view;
  PatchedView patched(view);
  REQUIRE(patched.store(13, 0x1122334455667788)); // over two words
  CHECK(patched.number<std::uint64_t>(13) == 0x1122334455667788);
  CHECK(patched.number<std::uint8_t>(12) == 12);
  CHECK(patched.number<std::uint8_t>(21) == 21);
  CHECK(view.number<std::uint8_t>(13) == 13);
  CHECK_FALSE(patched.store(Counted::size_bytes - 4, 0));
}
