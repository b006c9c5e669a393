#include "bench/pool_arrays.hpp"

#include <doctest/doctest.h>

#include "test_support.hpp"

using namespace nearfar;

TEST_CASE("kernels compute in a pool's arrays what they compute anywhere") {
  const std::vector<int> cpus(2, test::usable_cpu());
  constexpr std::size_t elements = 100'003;
  Result<bench::PoolArrays> made =
      bench::PoolArrays::create(*tier::parse("shm:/dev/shm"), elements, cpus);
  REQUIRE(bool(made));
  for (const char* kernel : {"copy", "scale", "add", "triad", "copy", "triad"}) {
    Result<probe::ArrayRepeat> repeat = made->bench.repeat(kernel, cpus);
    REQUIRE(bool(repeat));
    CHECK(repeat->counted_bytes >= 2 * elements * sizeof(double));
  }
  CHECK(made->bench.worst_error() < 1e-12);
}

TEST_CASE("arrays that no pool holds are refused") {
  const std::vector<int> cpus = {test::usable_cpu()};
  const auto made = bench::PoolArrays::create(*tier::parse("dram"), 1000, cpus);
  CHECK(made.error().code == Errc::bad_input);
}
