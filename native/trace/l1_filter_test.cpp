#include "trace/recorder/l1_filter.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <list>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "trace/recorder/stack_tracker.hpp"
#include "trace/windows.hpp"

using namespace nearfar::trace;

namespace {

/// The same cache as lists of lines, the most recently used first. An invalid line has no number.
class Reference {
public:
  Reference(std::uint32_t sets, std::uint32_t ways) : sets_(sets, Set(ways)) {}

  struct Line {
    std::uint64_t number = ~std::uint64_t{0};
    bool dirty = false;
  };
  /// Sets the victim of a miss.
  void access(std::uint64_t number, bool store, Line& victim) {
    Set& set = sets_[number % sets_.size()];
    Line line{number};
    if (const auto found = std::ranges::find(set, number, &Line::number); found != set.end()) {
      line = *found;
      set.erase(found);
    } else {
      victim = set.back();
      set.pop_back();
    }
    line.dirty |= store;
    set.push_front(line);
  }
  bool holds(std::uint64_t number) const {
    const Set& set = sets_[number % sets_.size()];
    return std::ranges::find(set, number, &Line::number) != set.end();
  }
  bool is_newest(std::uint64_t number) const {
    return sets_[number % sets_.size()].front().number == number;
  }
  bool invalidate(std::uint64_t number) {
    Set& set = sets_[number % sets_.size()];
    const auto found = std::ranges::find(set, number, &Line::number);
    if (found == set.end()) return false;
    const bool dirty = found->dirty;
    *found = Line{};
    return dirty;
  }

private:
  using Set = std::list<Line>;
  std::vector<Set> sets_;
};

struct CacheFilter {
  CacheFilter(std::uint32_t sets, std::uint32_t ways) { REQUIRE(l1->open(sets, ways)); }
  CacheFilter(const CacheFilter&) = delete;
  CacheFilter& operator=(const CacheFilter&) = delete;
  ~CacheFilter() { l1->close(); }
  std::unique_ptr<L1Filter> l1{new L1Filter{}};
};

} // namespace

TEST_CASE("the first-level cache hits, misses and evicts as a list of lines by age") {
  for (const std::uint32_t ways : {1u, 2u, 8u, 12u}) {
    constexpr std::uint32_t sets = 8;
    CacheFilter filter(sets, ways);
    L1Filter& l1 = *filter.l1;
    Reference reference(sets, ways);
    nearfar::Random random(ways);
    CAPTURE(ways);
    for (int i = 0; i < 100'000; ++i) {
      const std::uint64_t word = random.next();
      const std::uint64_t line = word % (sets * ways * 2); // half of them fit
      const bool store = (word >> 32 & 3) == 0;
      if ((word >> 40) % 64 == 0) CHECK(l1.invalidate(line) == reference.invalidate(line));
      const bool newest = reference.is_newest(line);
      REQUIRE(l1.is_newest(line << 6) == newest);
      const bool fast = store ? l1.access_newest<true>(line << 6 | 56, 8)
                              : l1.access_newest<false>(line << 6 | 56, 8);
      REQUIRE(fast == newest);
      const bool held = reference.holds(line);
      Reference::Line victim;
      reference.access(line, store, victim);
      if (fast) continue;
      CacheTag evicted = 0;
      REQUIRE(l1.access(line, store, evicted) == held);
      if (held) continue;
      REQUIRE(L1Filter::is_dirty(evicted) == victim.dirty);
      if (victim.number != ~std::uint64_t{0}) REQUIRE(L1Filter::line_of(evicted) == victim.number);
    }
  }
}

TEST_CASE("an access across the end of a line is not that of one line") {
  CacheFilter filter(4, 2);
  CacheTag victim = 0;
  filter.l1->access(5, false, victim);
  CHECK(filter.l1->access_newest<false>(5 * 64 + 56, 8));
  CHECK_FALSE(filter.l1->access_newest<false>(5 * 64 + 57, 8));
}

TEST_CASE("an invalid line holds nothing, and evicting it writes nothing back") {
  CacheFilter filter(1, 2);
  CacheTag victim = 0;
  CHECK_FALSE(filter.l1->access(1, true, victim));
  CHECK_FALSE(L1Filter::is_dirty(victim)); // of an empty cache
  CHECK(filter.l1->invalidate(1));
  CHECK_FALSE(filter.l1->invalidate(1));
  CHECK_FALSE(filter.l1->access(2, false, victim));
  CHECK_FALSE(filter.l1->access(3, false, victim));
  CHECK_FALSE(L1Filter::is_dirty(victim));
}

TEST_CASE("a stack grows by pages, and a far address begins another one") {
  StackTracker stack{};
  CHECK_FALSE(stack.contains(0x7fff'0000'1234));
  stack.extend(0x7fff'0000'1234);
  CHECK(stack.contains(0x7fff'0000'1000));
  CHECK(stack.contains(0x7fff'0000'2fff)); // the caller's frame
  stack.extend(0x7ffe'fff0'0008);          // a megabyte below
  CHECK(stack.low() == 0x7ffe'fff0'0000);
  CHECK(stack.contains(0x7fff'0000'1234));
  stack.extend(0x6000'0000'0000); // a coroutine's
  CHECK_FALSE(stack.contains(0x7fff'0000'1234));
  CHECK(stack.contains(0x6000'0000'0000));
  stack.set(0x1000, 0x3000);
  CHECK(stack.contains(0x2fff));
  CHECK_FALSE(stack.contains(0x3000));
  CHECK(stack.end() == 0x3000);
}

TEST_CASE("kept windows stay at even distances, and are never more than wanted") {
  for (const std::uint64_t most : {1u, 2u, 3u, 8u}) {
    Windows windows(most * block_records);
    std::vector<std::uint64_t> opened; // slots that began open
    for (std::uint64_t slot = 0; slot < 200; ++slot) {
      if (windows.open()) opened.push_back(slot);
      for (std::uint64_t i = 0; i < block_records; ++i)
        windows.add_record();
      const auto kept = std::ranges::count_if(
          opened, [&](std::uint64_t each) { return each % windows.every() == 0; });
      CAPTURE(slot);
      REQUIRE(kept <= static_cast<std::int64_t>(most));
      REQUIRE(kept * 2 + 2 >= static_cast<std::int64_t>(std::min(most, slot + 1)));
    }
  }
}
