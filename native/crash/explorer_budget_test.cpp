// Which images the explorer takes for different ones, and which it spends a budget on.
#include "crash/explorer.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <string_view>

#include "crash/test_words.hpp"
#include "crash/workload.hpp"

using namespace nearfar;
using namespace nearfar::crash;
using storelog::Site;

namespace {

/// Many images fail while it fills 60 lines, by the same mark: each line by a place of its own, four
/// persisted at a time, or all by one place and persisted together. Then comes another bug, in which no
/// store is suspicious: a flag is durable before its value, or may be.
class TwoBugs final : public Words {
public:
  explicit TwoBugs(bool together) : together_(together) {}

  Status apply(const Operation&) override {
    set(mark);
    persist(mark, mark);
    const unsigned lines = together_ ? end - first_line : 32; // that are persisted at once
    for (unsigned from = first_line; from < end; from += lines) {
      for (unsigned at = from; at < from + lines; at += 8)
        set(at, 1, Site("many_lines.c", together_ ? 1 : at));
      persist(from, from + lines - 8);
    }
    set(mark, 0);
    persist(mark, mark);
    if (together_) set(value, 1, Site("second.c", 1));
    set(flag, 1, Site("second.c", 2));
    persist(flag, together_ ? value : flag);
    if (!together_) set(value, 1, Site("second.c", 1));
    persist(value, value);
    return Done{};
  }
  const char* contents(Contents&) override {
    if (words_[mark] != 0) return "the mark is there";
    return words_[flag] != 0 && words_[value] == 0 ? "the flag is there, but not the value"
                                                   : nullptr;
  }

private:
  static constexpr unsigned mark = 0, flag = 8, value = 16, first_line = 24, end = 504;

  bool together_;
};

/// Stores 1 at the beginning of two neighboring lines, and notes which images it sees.
class Neighbors final : public Words {
public:
  Status apply(const Operation&) override {
    for (const std::size_t word : {24u, 32u})
      set(word);
    persist(24, 32);
    return Done{};
  }
  const char* contents(Contents&) override {
    seen[words_[24]][words_[32]] = true;
    return nullptr;
  }

  bool seen[2][2] = {};
};

/// Counts in a line that it persists, and in one that it never flushes: each failure point has one version
/// more of that.
class Statistics final : public Words {
public:
  static constexpr std::uint64_t counted = 10'000;

  Status apply(const Operation&) override {
    for (std::uint64_t i = 0; i < counted; ++i) {
      set(8, i + 1);
      set(0, i + 1);
      persist(0, 0);
    }
    return Done{};
  }
  const char* contents(Contents&) override { return nullptr; }
};

/// As for a checker whose reads are unknown. Budget 0: all images.
Exploration explore(Subject& subject, std::uint64_t budget) {
  Arena arena(4096);
  Result<Trace> trace = record_trace(subject, arena, mixed_operations(1, 1, false), false);
  REQUIRE(trace);
  Options options;
  options.read_all = true;
  options.budget = budget;
  return Explorer(subject, arena, *trace, options).explore();
}

} // namespace

// Took ten minutes while each failure point listed all versions anew, for each walk through the log.
TEST_CASE("a line that is stored often and never flushed does not hold up a small budget") {
  Statistics subject;
  const Exploration result = explore(subject, 100);
  CHECK(result.states == 100);
  CHECK(result.points == Statistics::counted + 1);
  CHECK(result.states_left > 0);
}

TEST_CASE("one cause does not take the whole budget") {
  for (const bool together : {false, true}) {
    CAPTURE(together);
    TwoBugs subject(together);
    const Exploration result = explore(subject, 100);
    CHECK(std::any_of(result.findings.begin(), result.findings.end(), [](const Finding& finding) {
      return finding.store.file() == std::string_view("second.c");
    }));
  }
}

TEST_CASE("images of small numbers in neighboring lines are different") {
  Neighbors subject;
  explore(subject, 0);
  for (const auto& [none, both] : subject.seen) {
    CHECK(none);
    CHECK(both);
  }
}
