#include "cache/layer_condition.hpp"

#include <cmath>
#include <doctest/doctest.h>

using namespace nearfar;
using cache::Pages;
using cache::Policy;

namespace {

double factor(std::uint64_t columns, std::uint64_t cache_bytes, Policy policy,
              unsigned element_bytes = 8, unsigned ways = 16, Pages pages = Pages::in_order) {
  Result<double> phi = cache::layer_condition_factor(columns, element_bytes,
                                                     {cache_bytes, ways, 64, policy}, pages, 1);
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

TEST_CASE(
    "with scattered pages, rows leave an LRU cache as competitors of a set outnumber its ways") {
  // between two uses of a line, four rows pass: on average `lines` of them in a set
  const auto missed = [](double lines, unsigned ways) {
    double term = std::exp(-lines), kept = 0; // Poisson: fewer than `ways` lines
    for (unsigned k = 0; k < ways; term *= lines / ++k)
      kept += term;
    return 1 - kept;
  };
  for (const unsigned ways : {4u, 11u, 16u})
    for (const double full : {0.5, 0.8, 1.0, 1.3, 2.0}) {
      constexpr std::uint64_t cache_bytes = 2 << 20;
      const auto columns = static_cast<std::uint64_t>(full * cache_bytes / 4 / 8);
      const double phi = factor(columns, cache_bytes, Policy::lru, 8, ways, Pages::scattered);
      CAPTURE(ways);
      CAPTURE(full);
      CHECK(std::abs((phi - 1) * 1.5 - missed(full * ways, ways)) < 0.03);
    }
}

TEST_CASE("no stencil without a neighbor on each side") {
  CHECK(cache::layer_condition_factor(2, 8, {1 << 20, 16}, Pages::in_order, 1).error().code ==
        Errc::bad_input);
  CHECK(cache::layer_condition_factor(100, 0, {1 << 20, 16}, Pages::in_order, 1).error().code ==
        Errc::bad_input);
  CHECK(cache::layer_condition_factor(100, 8, {10, 16}, Pages::in_order, 1).error().code ==
        Errc::bad_input);
}
