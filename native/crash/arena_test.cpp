#include "crash/arena.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include "os/file.hpp"
#include "os/pages.hpp"

using namespace nearfar;
using namespace nearfar::crash;

TEST_CASE("what others changed of a file is put back, also where it was empty, and its size") {
  constexpr std::size_t bytes = 1 << 20;
  Result<os::File> file = os::create_unnamed("/tmp");
  REQUIRE(file);
  REQUIRE(os::reserve_space(*file, bytes));
  Result<os::MappedRange> range = os::map_range(bytes, os::PageSize::small_4k, file->fd(), false);
  REQUIRE(range);
  Arena arena(range->data(), bytes, file->fd());
  std::vector<std::byte> durable(bytes);
  durable[5000] = std::byte{1};
  arena.copy_all(durable);
  CHECK(!arena.restore(durable));

  const char other = 'x';
  REQUIRE(pwrite(file->fd(), &other, 1, 5000) == 1);
  REQUIRE(pwrite(file->fd(), &other, 1, 900'000) == 1);
  CHECK(arena.restore(durable));
  CHECK(std::equal(durable.begin(), durable.end(), range->data()));

  REQUIRE(ftruncate(file->fd(), 0) == 0);
  CHECK(arena.restore(durable));
  CHECK(std::equal(durable.begin(), durable.end(), range->data()));
  durable[5000] = {};
  arena.copy_all(durable);
  CHECK(std::equal(durable.begin(), durable.end(), range->data()));
}
