#include "crash/turns.hpp"

#include <doctest/doctest.h>

using namespace nearfar::crash;
using namespace nearfar::storelog;

namespace {

struct Made {
  std::uint16_t thread;
  EventKind kind;
  std::uint64_t address;
  unsigned line; ///< of the source
};

Log log_of(const std::vector<Made>& events, const char* file = "program.c") {
  Log log;
  for (const Made& made : events)
    log.events.push_back({made.kind, made.thread, has_range(made.kind) ? 8u : 0u, made.address, 0,
                          Site(file, made.line)});
  return log;
}

} // namespace

TEST_CASE("a thread is held before each flush of a store of its own, first times first") {
  const Log log = log_of({{1, EventKind::begin, 1, 1},
                          {1, EventKind::store, 0, 10},
                          {1, EventKind::store, 8, 11}, // the same line: the last store is named
                          {1, EventKind::flush, 0, 12},
                          {1, EventKind::flush, 0, 12}, // nothing was stored since
                          {1, EventKind::store, 0, 11},
                          {1, EventKind::flush, 0, 12},
                          {2, EventKind::begin, 2, 1},
                          {2, EventKind::store, 64, 20},
                          {2, EventKind::flush, 64, 21}});
  const std::vector<Turn> turns = list_turns(log);
  REQUIRE(turns.size() == 3);
  CHECK((turns[0].thread == 1 && turns[0].flush == 1 && turns[0].store.line() == 11));
  CHECK((turns[1].thread == 2 && turns[1].flush == 1 && turns[1].store.line() == 20));
  CHECK((turns[2].thread == 1 && turns[2].flush == 3 && turns[2].store.line() == 11));
  CHECK(first_of_others(log, 1) == 7);
  CHECK(first_of_others(log, 2) == 0);
  CHECK(first_of_others(log, 0) == 0);
}

TEST_CASE(
    "the main thread, work before the first operation, and other threads' stores do not count") {
  const Log log = log_of({{0, EventKind::begin, 1, 1},
                          {0, EventKind::store, 0, 10},
                          {0, EventKind::flush, 0, 11},
                          {0, EventKind::end, 1, 1},
                          {1, EventKind::store, 64, 12},
                          {1, EventKind::flush, 64, 13},
                          {2, EventKind::store, 128, 14},
                          {1, EventKind::begin, 2, 1},
                          {1, EventKind::flush, 128, 15}});
  CHECK(list_turns(log).empty());
  CHECK(first_of_others(log, 1) == log.events.size());
}
