#include "sample/record_window.hpp"

#include <doctest/doctest.h>

using nearfar::sample::RecordWindow;

namespace {

struct Timed {
  std::uint64_t time_ns;
};

} // namespace

TEST_CASE("records are given by time, no sooner than the next round has ended") {
  std::vector<std::uint64_t> given;
  const auto take = [&](const Timed& one) { given.push_back(one.time_ns); };
  RecordWindow<Timed> window;
  for (const std::uint64_t time : {5u, 3u, 9u})
    window.add({time}, take);
  window.end_round(take);
  CHECK(given.empty()); // the next round may have a record of time 4
  for (const std::uint64_t time : {12u, 4u, 10u})
    window.add({time}, take);
  window.end_round(take);
  CHECK(given == std::vector<std::uint64_t>{3, 4, 5, 9});
  window.add({11}, take);
  window.finish(take);
  CHECK(given == std::vector<std::uint64_t>{3, 4, 5, 9, 10, 11, 12});
}

TEST_CASE("without rounds a bounded number is held") {
  constexpr std::uint64_t count = 3 * RecordWindow<Timed>::max_records;
  std::uint64_t given = 0;
  std::uint64_t last = 0;
  bool ordered = true;
  const auto take = [&](const Timed& one) {
    ++given;
    ordered &= one.time_ns >= last;
    last = one.time_ns;
  };
  RecordWindow<Timed> window;
  for (std::uint64_t i = 0; i < count; ++i) {
    window.add({i ^ 7}, take); // neighbors are out of order
    REQUIRE(i + 1 - given < RecordWindow<Timed>::max_records);
  }
  window.finish(take);
  CHECK(given == count);
  CHECK(ordered);
}
