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

TEST_CASE("the sum of two timelines is the timeline of all accesses") {
  Timeline all, early, late;
  const Time first = all.interval();
  for (Time i = 0; i < 2000; ++i) {
    all.add(i * first / 2);
    (i < 300 ? early : late).add(i * first / 2);
  }
  Timeline sum = early;
  sum.add(late);
  late.add(early);
  for (const Timeline& added : {sum, late}) {
    CHECK(added.interval() == all.interval());
    CHECK(added.counts() == all.counts());
  }
}
