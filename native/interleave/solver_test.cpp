#include "interleave/solver.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <limits>
#include <string>

#include "base/random.hpp"

using namespace nearfar;
using namespace nearfar::interleave;

namespace {

constexpr double second = 1e9;
constexpr double gb = 1e9;
constexpr std::uint64_t unlimited = 1ULL << 60;

double between(Random& random, double low, double high) {
  return low + (high - low) * static_cast<double>(random.next() >> 11) * 0x1p-53;
}

/// A queue's curve: latency rises with 1/(1 - utilization), up to `end` of the capacity.
LoadedLatency queue(double idle_ns, double peak, double end, std::vector<double> read_shares) {
  std::vector<LoadedPoint> points;
  for (const double share : read_shares)
    for (int i = 0; i <= 10; ++i) {
      const double u = end * i / 10, reached = peak * (0.7 + 0.3 * share);
      points.push_back({share, u * reached, idle_ns * (1 + 0.3 * u / (1.0001 - u))});
    }
  Result<LoadedLatency> made = LoadedLatency::create(points);
  REQUIRE(made);
  return std::move(*made);
}

PlacementTime machine(double base_ns, Tier near, Tier far) {
  Result<PlacementTime> made = PlacementTime::create(base_ns, std::move(near), std::move(far));
  REQUIRE(made);
  return std::move(*made);
}

Tier random_tier(Random& random, double idle_ns, double peak) {
  std::vector<double> shares = {1};
  if (random.next() % 2) shares.push_back(0.5);
  Tier tier{queue(idle_ns, peak, between(random, 0.6, 0.99), shares), {}, 0};
  if (random.next() % 2)
    tier.background = {between(random, 0, 0.3) * peak, between(random, 0, 0.1) * peak};
  return tier;
}

struct Case {
  PlacementTime times;
  std::vector<Site> sites;
  Demand fixed = {};
};

Case random_case(Random& random, std::size_t count) {
  std::vector<Site> sites;
  double bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double size = between(random, 1, 100);
    bytes += size;
    const double near = std::pow(10, between(random, -3, 0)) * second;
    sites.push_back({near, near * between(random, 0.8, 4),
                     std::pow(10, between(random, -2, 1)) * 30 * gb,
                     random.next() % 2 ? std::pow(10, between(random, -2, 1)) * 15 * gb : 0, size});
  }
  Tier near = random_tier(random, between(random, 80, 130), between(random, 40, 250) * gb);
  Tier far = random_tier(random, between(random, 150, 500), between(random, 10, 60) * gb);
  near.capacity_bytes = bytes * between(random, 0.2, 1.2);
  far.capacity_bytes = bytes;
  Demand fixed;
  if (random.next() % 2) {
    fixed.add(sites.back(), 1);
    fixed.add(sites.front(), 0);
  }
  return {machine(between(random, 0.1, 2) * second, near, far), std::move(sites), fixed};
}

/// Every placement, in the order of a counter.
double exhaustive(const Case& given, unsigned steps) {
  std::vector<unsigned> levels(given.sites.size(), 0);
  double best = std::numeric_limits<double>::infinity();
  for (bool more = true; more;) {
    if (fits(given.times, given.sites, levels, steps))
      best =
          std::min(best, given.times.time_ns(demand_of(given.sites, levels, steps, given.fixed)));
    more = false;
    for (unsigned& level : levels) {
      more = level < steps;
      level = more ? level + 1 : 0;
      if (more) break;
    }
  }
  return best;
}

void check_cases(std::uint64_t seed, int cases, std::size_t least, std::size_t most,
                 unsigned steps) {
  Random random(seed);
  for (int i = 0; i < cases; ++i) {
    CAPTURE(i);
    const Case given = random_case(random, least + random.next() % (most - least + 1));
    const double best = exhaustive(given, steps);
    Result<Solution> found = solve(given.times, given.sites, steps, unlimited, given.fixed);
    REQUIRE(found);
    CHECK(found->exact);
    CHECK(fits(given.times, given.sites, found->near_steps, steps));
    CHECK(found->time_ns == doctest::Approx(best).epsilon(1e-9));
  }
}

/// Cases of a long run, which `make test-long` starts; otherwise a part of them.
int cases(int all, int part) { return std::getenv("NEARFAR_TEST_LONG") != nullptr ? all : part; }

/// A memory that answers in `latency_ns` up to `peak` bytes/s.
Tier flat(double latency_ns, double peak, double capacity = 1e18) {
  const LoadedPoint points[] = {{1, 0, latency_ns}, {1, peak, latency_ns}};
  Result<LoadedLatency> made = LoadedLatency::create(points);
  REQUIRE(made);
  return {std::move(*made), {}, capacity};
}

} // namespace

TEST_CASE("the solver finds what exhaustive search finds: up to 4 sites in eighths") {
  check_cases(1, cases(10000, 300), 1, 4, 8);
}

TEST_CASE("the solver finds what exhaustive search finds: 6 sites in eighths") {
  check_cases(2, cases(100, 1), 6, 6, 8);
}

TEST_CASE("the solver finds what exhaustive search finds: 8 sites near, half or far") {
  check_cases(3, cases(100, 3), 8, 8, 2);
}

TEST_CASE("streams are interleaved in the proportion of the bandwidths") {
  const Case given{machine(1, flat(100, 30 * gb), flat(200, 10 * gb)), {{0, 0, 80 * gb, 0, 1}}};
  Result<Solution> found = solve(given.times, given.sites, 8, unlimited);
  REQUIRE(found);
  CHECK(found->near_steps == std::vector<unsigned>{6});
  CHECK(found->time_ns == doctest::Approx(2 * second));
  const TierState near = given.times.near_state(found->demand, found->time_ns);
  CHECK(near.utilization == doctest::Approx(1));
}

TEST_CASE("chained loads stay near while there is bandwidth, and streams give way to them") {
  const Case alone{machine(second, flat(100, 100 * gb), flat(300, 10 * gb)),
                   {{second, 3 * second, 1 * gb, 0, 1}}};
  Result<Solution> found = solve(alone.times, alone.sites, 8, unlimited);
  REQUIRE(found);
  CHECK(found->near_steps == std::vector<unsigned>{8});
  CHECK(found->time_ns == doctest::Approx(2 * second));

  Tier near{queue(100, 30 * gb, 0.99, {1}), {}, 1e18};
  const Case both{machine(second, near, flat(200, 20 * gb)),
                  {{second, 2 * second, 1 * gb, 0, 1}, {0, 0, 80 * gb, 0, 1}}};
  found = solve(both.times, both.sites, 8, unlimited);
  REQUIRE(found);
  CHECK(found->near_steps[0] == 8);
  CHECK(found->near_steps[1] < 8);
}

TEST_CASE("a site without effect is far, and capacities hold") {
  const Case given{machine(second, flat(100, 30 * gb, 10), flat(300, 10 * gb)),
                   {{second, 3 * second, gb, 0, 20}, {0, 0, 0, 0, 5}}};
  Result<Solution> found = solve(given.times, given.sites, 8, unlimited);
  REQUIRE(found);
  CHECK(found->near_steps == std::vector<unsigned>{4, 0});
}

TEST_CASE("a stopped search says so, and has a placement that fits") {
  Random random(4);
  const Case given = random_case(random, 8);
  Result<Solution> found = solve(given.times, given.sites, 8, 3);
  REQUIRE(found);
  CHECK(!found->exact);
  CHECK(fits(given.times, given.sites, found->near_steps, 8));
}

TEST_CASE("sites that do not fit, and a background without room, are errors") {
  const PlacementTime times = machine(second, flat(100, gb, 1), flat(300, gb, 1));
  const std::vector<Site> sites = {{0, 0, 0, 0, 3}};
  CHECK(solve(times, sites, 8, unlimited).error().code == Errc::no_space);
  const std::vector<Site> negative = {{-1, 0, 0, 0, 0}};
  CHECK(solve(times, negative, 8, unlimited).error().code == Errc::bad_input);
  Tier full = flat(100, 10 * gb);
  full.background = {10 * gb, 0};
  CHECK(std::string(PlacementTime::create(second, full, flat(1, gb)).error().what)
            .find("10 GB/s leaves no bandwidth in near memory") != std::string::npos);
  CHECK(PlacementTime::create(0, flat(1, gb), flat(1, gb)).error().code == Errc::bad_input);
}
