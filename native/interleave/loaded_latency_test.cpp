#include "interleave/loaded_latency.hpp"

#include <doctest/doctest.h>
#include <limits>

using namespace nearfar;
using namespace nearfar::interleave;

namespace {

LoadedLatency curve_of(const std::vector<LoadedPoint>& points) {
  Result<LoadedLatency> made = LoadedLatency::create(points);
  REQUIRE(made);
  return std::move(*made);
}

} // namespace

TEST_CASE("latency is interpolated between points, and constant before the first") {
  const LoadedLatency curve = curve_of({{1, 40, 200}, {1, 10, 100}, {1, 20, 120}});
  CHECK(curve.idle_ns() == 100);
  CHECK(curve.peak(1) == 40);
  CHECK(curve.latency_ns(1, 0) == 100);
  CHECK(curve.latency_ns(1, 15) == doctest::Approx(110));
  CHECK(curve.latency_ns(1, 40) == 200);
}

TEST_CASE("latency does not fall with bandwidth, and points of an overloaded memory are left out") {
  const LoadedLatency curve =
      curve_of({{1, 10, 100}, {1, 20, 90}, {1, 40, 200}, {1, 40, 500}, {1, 35, 800}});
  CHECK(curve.idle_ns() == 90);
  CHECK(curve.latency_ns(1, 10) == 90);
  CHECK(curve.latency_ns(1, 30) == doctest::Approx(145));
  CHECK(curve.latency_ns(1, 40) == 200);
}

TEST_CASE("between two fractions of reads, peak and latency at equal utilization are in between") {
  const LoadedLatency curve = curve_of({{1, 0, 100}, {1, 40, 200}, {0.5, 0, 100}, {0.5, 20, 300}});
  CHECK(curve.peak(0.75) == doctest::Approx(30));
  CHECK(curve.latency_ns(0.75, 30) == doctest::Approx(250));
  CHECK(curve.latency_ns(0.75, 15) == doctest::Approx(175));
  CHECK(curve.peak(0.1) == 20);
  CHECK(curve.lowest_latency_ns(20) == doctest::Approx(150));
}

TEST_CASE("invalid points are refused") {
  const double endless = std::numeric_limits<double>::infinity();
  CHECK(LoadedLatency::create({}).error().code == Errc::bad_input);
  for (const LoadedPoint& point :
       {LoadedPoint{2, 1, 1}, LoadedPoint{1, -1, 1}, LoadedPoint{1, 1, 0},
        LoadedPoint{1, endless, 1}, LoadedPoint{1, 0, 100}})
    CHECK(LoadedLatency::create(std::span(&point, 1)).error().code == Errc::bad_input);
}
