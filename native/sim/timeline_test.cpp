#include "sim/timeline.hpp"

#include <doctest/doctest.h>

#include <numeric>

using namespace nearfar::sim;

TEST_CASE("accesses are counted in the interval in which they ended") {
  Timeline timeline;
  const Time first = timeline.interval();
  timeline.add(0);
  timeline.add(first - 1);
  timeline.add(first);
  CHECK(timeline.counts()[0] == 2);
  CHECK(timeline.counts()[1] == 1);
}

TEST_CASE("later accesses lengthen the intervals, and none is lost") {
  Timeline timeline;
  const Time first = timeline.interval();
  for (Time i = 0; i < 1000; ++i)
    timeline.add(i * first);
  CHECK(timeline.interval() == 4 * first);
  const auto& counts = timeline.counts();
  CHECK(std::accumulate(counts.begin(), counts.end(), 0u) == 1000);
  CHECK(counts[0] == 4);
  CHECK(counts[249] == 4);
  CHECK(counts[250] == 0);
  timeline.add(~Time{0} >> 1);
  CHECK(std::accumulate(counts.begin(), counts.end(), 0u) == 1001);
}
