#include "crash/suspects.hpp"

#include <doctest/doctest.h>
#include <tuple>

using namespace nearfar::crash;
using namespace nearfar::storelog;

namespace {

/// Each event is at the line of its number, from 1, unless its line is given.
Log log_of(const std::vector<std::tuple<EventKind, std::uint64_t, unsigned>>& events) {
  Log log;
  for (const auto& [kind, address, line] : events)
    log.events.push_back({kind, 0, has_range(kind) ? 8u : 0u, address, 0,
                          Site("program.c", line != 0 ? line : log.events.size() + 1)});
  return log;
}

/// Lines of the stores of each batch that is not empty.
std::vector<std::vector<std::uint64_t>> lines_of(const Log& log) {
  std::vector<std::vector<std::uint64_t>> lines;
  for (const std::vector<Suspect>& batch : list_suspects(log)) {
    if (batch.empty()) continue;
    lines.emplace_back();
    for (const Suspect& suspect : batch)
      lines.back().push_back(log.events[suspect.store].site.line());
  }
  return lines;
}

using Lines = std::vector<std::vector<std::uint64_t>>;

} // namespace

TEST_CASE("a program that flushes and fences each store has no suspects") {
  CHECK(lines_of(log_of({{EventKind::store, 0, 0},
                         {EventKind::flush, 0, 0},
                         {EventKind::fence, 0, 0},
                         {EventKind::store, 64, 0},
                         {EventKind::flush, 64, 0},
                         {EventKind::fence, 0, 0}}))
            .empty());
}

TEST_CASE("stores that are never durable come before those that are durable too late") {
  const Log log = log_of({{EventKind::store, 0, 0},
                          {EventKind::store, 64, 0},
                          {EventKind::flush, 64, 0},
                          {EventKind::fence, 0, 0}, // the first is overdue
                          {EventKind::flush, 0, 0},
                          {EventKind::store, 128, 0}, // before the fence of the first
                          {EventKind::fence, 0, 0}});
  CHECK(lines_of(log) == Lines{{6}, {1, 1, 6}});
  const std::vector<std::vector<Suspect>> batches = list_suspects(log);
  CHECK(batches[0][0].after == log.events.size());
  CHECK(batches[1][0].after == 3);
  CHECK(batches[1][1].after == 5);
}

TEST_CASE("an overdue store is missing after the first fence, and as late as it can be") {
  const Log log = log_of({{EventKind::store, 0, 0},
                          {EventKind::fence, 0, 0},
                          {EventKind::fence, 0, 0},
                          {EventKind::flush, 0, 0},
                          {EventKind::fence, 0, 0}});
  const std::vector<std::vector<Suspect>> batches = list_suspects(log);
  REQUIRE(batches[1].size() == 2);
  CHECK(batches[1][0].after == 1);
  CHECK(batches[1][1].after == 2);
}

TEST_CASE("a store that its operation does not log is a suspect, and comes too early") {
  const Log log = log_of({{EventKind::begin, 0, 0},
                          {EventKind::log, 0, 0},
                          {EventKind::store, 0, 0},
                          {EventKind::end, 0, 0},
                          {EventKind::begin, 1, 0},
                          {EventKind::log, 64, 0},
                          {EventKind::store, 0, 0},
                          {EventKind::store, 64, 0},
                          {EventKind::end, 1, 0},
                          {EventKind::flush, 0, 0},
                          {EventKind::flush, 64, 0},
                          {EventKind::fence, 0, 0}});
  const std::vector<std::vector<Suspect>> batches = list_suspects(log);
  REQUIRE(batches[0].size() == 1);
  CHECK(batches[0][0].early);
  CHECK(log.events[batches[0][0].store].site.line() == 7);
}

TEST_CASE("of many stores of one line the first, the last and two others are suspects") {
  std::vector<std::tuple<EventKind, std::uint64_t, unsigned>> events;
  for (std::uint64_t i = 0; i < 10; ++i)
    events.emplace_back(EventKind::store, 64 * i, 5);
  const Log log = log_of(events);
  std::vector<std::uint32_t> stores;
  for (const std::vector<Suspect>& batch : list_suspects(log))
    for (const Suspect& suspect : batch)
      stores.push_back(suspect.store);
  CHECK(stores == std::vector<std::uint32_t>{0, 9, 1, 5});
}
