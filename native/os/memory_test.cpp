#include "os/memory.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include "os/pages.hpp"
#include "test_support.hpp"

using namespace nearfar;

TEST_CASE("resident memory grows and shrinks by the pages touched; the peak stays") {
  constexpr std::size_t bytes = std::size_t{64} << 20;
  constexpr std::size_t slack = std::size_t{4} << 20;
  Result<os::ProcessMemory> before = os::process_memory();
  REQUIRE(bool(before));
  std::size_t held = 0;
  {
    Result<os::MappedRange> range = os::map_range(bytes, os::PageSize::small_4k, -1, false);
    REQUIRE(bool(range));
    os::prefault(*range);
    Result<os::ProcessMemory> during = os::process_memory();
    REQUIRE(bool(during));
    held = during->resident_bytes;
    CHECK(held >= before->resident_bytes + bytes);
    if (!test::skipped_under_tsan("its shadow memory is resident too"))
      CHECK(held <= before->resident_bytes + bytes + slack);
  }
  Result<os::ProcessMemory> after = os::process_memory();
  REQUIRE(bool(after));
  CHECK(after->resident_bytes <= held - bytes + slack);
  CHECK(after->peak_bytes + slack >= held);
}
