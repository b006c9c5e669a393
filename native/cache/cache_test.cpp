#include "cache/cache.hpp"

#include <algorithm>
#include <cstring>
#include <doctest/doctest.h>
#include <list>
#include <vector>

using namespace nearfar;
using cache::Cache;
using cache::Geometry;
using cache::Policy;

namespace {

Cache make(const Geometry& geometry, std::uint64_t seed = 1) {
  Result<Cache> made = Cache::create(geometry, seed);
  REQUIRE(made);
  return std::move(*made);
}

/// LRU written the plain way: each set a list, youngest first.
class PlainLru {
public:
  PlainLru(std::uint64_t sets, unsigned ways) : sets_(sets), ways_(ways) {}

  struct Entry {
    std::uint64_t line;
    bool dirty;
  };

  std::list<Entry>& set_of(std::uint64_t line) { return sets_[line % sets_.size()]; }

  bool touch(std::uint64_t line, bool write) {
    auto& set = set_of(line);
    auto at = std::find_if(set.begin(), set.end(), [&](const Entry& e) { return e.line == line; });
    if (at == set.end()) return false;
    set.splice(set.begin(), set, at);
    set.front().dirty |= write;
    return true;
  }

  cache::Victim fill(std::uint64_t line, bool write) {
    auto& set = set_of(line);
    cache::Victim victim;
    if (set.size() == ways_) {
      victim = {set.back().line, true, set.back().dirty};
      set.pop_back();
    }
    set.push_front({line, write});
    return victim;
  }

  cache::Flushed flush(std::uint64_t line, bool evict) {
    auto& set = set_of(line);
    auto at = std::find_if(set.begin(), set.end(), [&](const Entry& e) { return e.line == line; });
    if (at == set.end()) return {};
    const cache::Flushed found{true, at->dirty};
    at->dirty = false;
    if (evict) set.erase(at);
    return found;
  }

private:
  std::vector<std::list<Entry>> sets_;
  unsigned ways_;
};

void compare_with_plain(std::uint64_t sets, unsigned ways) {
  Cache cache = make({sets * ways * 64, ways});
  PlainLru plain(sets, ways);
  Random random(sets + ways);
  for (int step = 0; step < 40000; ++step) {
    const std::uint64_t line = random.below(sets * ways * 2);
    const bool write = random.below(3) == 0;
    if (random.below(10) == 0) {
      const cache::Flushed ours = cache.flush(line, write);
      const cache::Flushed theirs = plain.flush(line, write);
      REQUIRE(ours.present == theirs.present);
      REQUIRE(ours.dirty == theirs.dirty);
      continue;
    }
    const bool hit = cache.touch(line, write);
    REQUIRE(hit == plain.touch(line, write));
    if (hit) continue;
    const cache::Victim ours = cache.fill(line, write);
    const cache::Victim theirs = plain.fill(line, write);
    REQUIRE(ours.present == theirs.present);
    if (!ours.present) continue;
    REQUIRE(ours.line == theirs.line);
    REQUIRE(ours.dirty == theirs.dirty);
  }
}

} // namespace

TEST_CASE("LRU does what lists do, for any number of sets and ways") {
  for (const std::uint64_t sets : {1u, 2u, 3u, 7u, 64u, 100u})
    for (const unsigned ways : {1u, 2u, 3u, 8u, 11u, 16u, 17u, 20u, 64u, 70u, 96u}) {
      CAPTURE(sets);
      CAPTURE(ways);
      compare_with_plain(sets, ways);
    }
}

TEST_CASE("lines of a set are a multiple of the sets apart, for lines of any height") {
  for (const std::uint64_t sets : {3u, 29696u, 40721u, 65536u}) {
    Cache cache = make({sets * 64, 1});
    CHECK(cache.sets() == sets);
    Random random(5);
    for (int step = 0; step < 1000; ++step) {
      const std::uint64_t line = random.next() >> 6;
      cache.fill(line, false);
      CHECK(cache.fill(line + 1, false).line != line);
      CHECK(cache.fill(line + sets, false).line == line);
    }
  }
}

TEST_CASE("random replacement fills empty ways first and keeps its promises about dirt") {
  Cache cache = make({64 * 16, 16, 64, Policy::random});
  for (std::uint64_t line = 0; line < 16; ++line)
    CHECK(!cache.fill(line, line == 3).present);
  const cache::Flushed gone = cache.flush(7, true);
  CHECK(gone.present);
  CHECK(!gone.dirty);
  CHECK(!cache.fill(100, false).present);
  std::vector<unsigned> left(200, 0);
  for (std::uint64_t line = 1000; line < 17000; ++line) {
    const cache::Victim victim = cache.fill(line, false);
    REQUIRE(victim.present);
    CHECK(victim.dirty == (victim.line == 3));
    if (victim.line < left.size()) ++left[victim.line];
  }
  for (std::uint64_t line = 0; line < 16; ++line)
    CHECK(left[line] == (line == 7 ? 0u : 1u));
}

TEST_CASE("random replacement hits a cyclic stream that LRU always misses") {
  const auto hits = [](Policy policy) {
    Cache cache = make({64 * 64, 64, 64, policy});
    int count = 0;
    for (int round = 0; round < 100; ++round)
      for (std::uint64_t line = 0; line < 80; ++line)
        if (cache.touch(line, false))
          ++count;
        else
          cache.fill(line, false);
    return count;
  };
  CHECK(hits(Policy::lru) == 0);
  CHECK(hits(Policy::random) > 3000); // 8000 look-ups
}

TEST_CASE("equal seeds give equal evictions") {
  const auto victims = [](std::uint64_t seed) {
    Cache cache = make({64 * 8, 8, 64, Policy::random}, seed);
    std::vector<std::uint64_t> out;
    for (std::uint64_t line = 0; line < 200; ++line)
      out.push_back(cache.fill(line, false).line);
    return out;
  };
  CHECK(victims(4) == victims(4));
  CHECK(victims(4) != victims(5));
}

TEST_CASE("a write-back from above does not make a line younger") {
  Cache cache = make({64 * 2, 2});
  cache.fill(1, false);
  cache.fill(2, false);
  CHECK(cache.mark_dirty(1));
  CHECK(!cache.mark_dirty(9));
  const cache::Victim victim = cache.fill(3, false);
  CHECK(victim.line == 1);
  CHECK(victim.dirty);
}

TEST_CASE("a flush that keeps leaves the line in its place, clean") {
  Cache cache = make({64 * 2, 2});
  cache.fill(1, true);
  cache.fill(2, false);
  CHECK(cache.flush(1, false).dirty);
  CHECK(cache.holds(1));
  CHECK(!cache.flush(1, false).dirty);
  const cache::Victim victim = cache.fill(3, false);
  CHECK(victim.line == 1);
  CHECK(!victim.dirty);
}

TEST_CASE("impossible shapes are refused") {
  CHECK(Cache::create({1024, 0}).error().code == Errc::bad_input);
  CHECK(Cache::create({1 << 20, 97}).error().code == Errc::bad_input);
  CHECK(Cache::create({1 << 20, 8, 48}).error().code == Errc::bad_input);
  CHECK(Cache::create({1 << 20, 8, 0}).error().code == Errc::bad_input);
  CHECK(Cache::create({511, 8}).error().code == Errc::bad_input);
  CHECK(Cache::create({std::uint64_t{1} << 60, 8}).error().code == Errc::no_space);
  CHECK(*cache::parse_policy("random") == Policy::random);
  CHECK(cache::parse_policy("plru").error().code == Errc::bad_input);
}
