#include "base/histogram.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/random.hpp"

using nearfar::Histogram;

TEST_CASE("small values are kept exactly") {
  Histogram h;
  for (std::uint64_t v = 0; v < 20; ++v)
    h.record(v);
  CHECK(h.percentile(0.5) == 10);
  CHECK(h.largest() == 19);
  CHECK(h.total() == 20);
}

TEST_CASE("percentiles of a wide range are right to 3.2 %") {
  Histogram h;
  nearfar::Random random(7);
  std::vector<std::uint64_t> values;
  for (int i = 0; i < 20000; ++i)
    values.push_back(random.next() >> (random.below(50)));
  for (const std::uint64_t v : values)
    h.record(v);
  std::sort(values.begin(), values.end());
  for (const double share : {0.1, 0.5, 0.9, 0.99, 0.999}) {
    const auto exact = static_cast<double>(
        values[static_cast<std::size_t>(share * static_cast<double>(values.size()))]);
    const auto reported = static_cast<double>(h.percentile(share));
    CHECK(reported >= exact);
    CHECK(reported <= exact * 1.032);
  }
}

TEST_CASE("every value is in the bucket of the least bound that is not below it") {
  Histogram h;
  for (const std::uint64_t v : {3u, 3u, 70u, 71u, 1000u})
    h.record(v);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seen;
  h.each([&](std::uint64_t bound, std::uint64_t values) { seen.emplace_back(bound, values); });
  CHECK(seen == std::vector<std::pair<std::uint64_t, std::uint64_t>>{{3, 2}, {71, 2}, {1007, 1}});
}

TEST_CASE("an empty histogram has percentile 0") { CHECK(Histogram().percentile(0.5) == 0); }
