#include "cache/layer_condition.hpp"

#include <doctest/doctest.h>

using namespace nearfar;
using cache::Policy;

namespace {

double factor(std::uint64_t columns, std::uint64_t cache_bytes, Policy policy,
              unsigned element_bytes = 8) {
  Result<double> phi =
      cache::layer_condition_factor(columns, element_bytes, {cache_bytes, 16, 64, policy}, 1);
  REQUIRE(phi);
  return *phi;
}

} // namespace

TEST_CASE("rows that fit the cache are read once") {
  for (const Policy policy : {Policy::lru, Policy::random})
    CHECK(factor(1000, 1 << 20, policy) == doctest::Approx(1.0).epsilon(0.005));
  CHECK(factor(5000, 256 << 10, Policy::lru, 4) == doctest::Approx(1.0).epsilon(0.005));
}

TEST_CASE("rows that do not fit are read three times") {
  CHECK(factor(100000, 256 << 10, Policy::lru) == doctest::Approx(5.0 / 3).epsilon(0.001));
  const double random = factor(400000, 256 << 10, Policy::random);
  CHECK(random > 1.5);
  CHECK(random < 5.0 / 3 + 0.001);
}

TEST_CASE("LRU breaks at once, random little by little") {
  // rows of 64 KiB: three of them and what is written meanwhile, against 512, 256 and 128 KiB
  CHECK(factor(8192, 512 << 10, Policy::lru) < 1.01);
  CHECK(factor(8192, 128 << 10, Policy::lru) > 1.6);
  const double wide = factor(8192, 512 << 10, Policy::random);
  const double narrow = factor(8192, 128 << 10, Policy::random);
  CHECK(wide > 1.01);
  CHECK(narrow > wide);
  CHECK(narrow < 1.6);
}

TEST_CASE("no stencil without a neighbor on each side") {
  CHECK(cache::layer_condition_factor(2, 8, {1 << 20, 16}, 1).error().code == Errc::bad_input);
  CHECK(cache::layer_condition_factor(100, 0, {1 << 20, 16}, 1).error().code == Errc::bad_input);
  CHECK(cache::layer_condition_factor(100, 8, {10, 16}, 1).error().code == Errc::bad_input);
}
