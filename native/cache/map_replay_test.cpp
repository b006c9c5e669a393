#include "cache/map_replay.hpp"

#include <cstdlib>
#include <doctest/doctest.h>

using namespace nearfar;
using cache::MapOperation;
using cache::MapReplay;
using cache::MapReplayPlan;
using cache::Policy;

namespace {

constexpr cache::Geometry large{1 << 30, 16};
constexpr cache::Geometry tiny{64 * 16, 16};

MapReplay replay(std::uint64_t operations, MapOperation operation, const cache::Geometry& geometry,
                 std::vector<cache::MapVariant> variants) {
  MapReplayPlan plan;
  plan.operations = operations;
  plan.geometry = geometry;
  plan.variants = std::move(variants);
  Result<MapReplay> result = cache::replay_map(plan, operation);
  REQUIRE(result);
  return std::move(*result);
}

/// The map as chains of keys, written for clearness: newest first, rebuilt in the map's own order.
struct PlainMap {
  std::vector<std::vector<std::uint64_t>> buckets = std::vector<std::vector<std::uint64_t>>(10);
  std::uint64_t count = 0;

  std::uint64_t hash(std::uint64_t key) const {
    return (1804289383ull * key + 846930886ull) % 32212254719ull % buckets.size();
  }

  void insert(std::uint64_t key) {
    auto& chain = buckets[hash(key)];
    chain.insert(chain.begin(), key);
    ++count;
    if (chain.size() > 10 || (chain.size() > 5 && count > 2 * buckets.size())) grow();
  }

  void grow() {
    const auto old = std::move(buckets);
    buckets = std::vector<std::vector<std::uint64_t>>(old.size() * 2);
    for (const auto& chain : old)
      for (const std::uint64_t key : chain) {
        auto& now = buckets[hash(key)];
        now.insert(now.begin(), key);
      }
  }

  /// Entries looked at to get every key once: 1 for the first of a chain, and so on.
  std::uint64_t walked() const {
    std::uint64_t sum = 0;
    for (const auto& chain : buckets)
      sum += chain.size() * (chain.size() + 1) / 2;
    return sum;
  }
};

} // namespace

TEST_CASE("keys come from this C library's own generator") {
  std::uint32_t ours = 1;
  unsigned theirs = 1;
  for (int i = 0; i < 1000; ++i)
    CHECK(cache::glibc_rand_r(ours) == static_cast<std::uint32_t>(rand_r(&theirs)));
}

TEST_CASE("chains are as long as in a map written plainly") {
  for (const std::uint64_t operations : {1u, 10u, 57u, 1000u, 20000u}) {
    CAPTURE(operations);
    PlainMap plain;
    std::uint32_t seed = 1;
    for (std::uint64_t i = 0; i < operations; ++i) {
      const std::uint64_t low = cache::glibc_rand_r(seed);
      plain.insert(std::uint64_t{cache::glibc_rand_r(seed)} << 32 | low);
    }
    const MapReplay got = replay(operations, MapOperation::get, large, {{Policy::lru, true}});
    CHECK(got.buckets == plain.buckets.size());
    CHECK(got.walked == plain.walked());
    CHECK(got.heads == operations);
    CHECK(got.fences == 0);
  }
}

TEST_CASE(
    "a cache that holds the map misses nothing if flushes keep, each line once if they evict") {
  const MapReplay got = replay(5000, MapOperation::get, large,
                               {{Policy::lru, false}, {Policy::lru, true}, {Policy::random, true}});
  // the last doubling's zeroes went past the cache: heads of buckets without an entry are not asked
  CHECK(got.missed[0] == 0);
  CHECK(got.missed[1] > 0);
  CHECK(got.missed[1] <= 5000 + got.buckets * 2);
  CHECK(got.missed[2] == got.missed[1]);
}

TEST_CASE("a cache of one set misses almost every visit") {
  const MapReplay got = replay(5000, MapOperation::get, tiny, {{Policy::lru, true}});
  const std::uint64_t visits = got.heads + got.walked;
  CHECK(got.missed[0] <= visits);
  CHECK(static_cast<double>(got.missed[0]) > 0.95 * static_cast<double>(visits));
}

TEST_CASE("insertions ask twice, flush and fence, and rebuild") {
  const MapReplay got = replay(1000, MapOperation::insert, large, {{Policy::lru, true}});
  CHECK(got.heads == 2000);
  CHECK(got.moved >= 10);
  CHECK(got.fences > 1000 * 6); // entry, head, value, and three of the count
  CHECK(got.flushed_lines > got.fences);
}

TEST_CASE("removals end with the smallest map and visit less and less") {
  const MapReplay gets = replay(3000, MapOperation::get, large, {{Policy::lru, true}});
  const MapReplay got = replay(3000, MapOperation::remove, large, {{Policy::lru, true}});
  CHECK(got.heads == 3000);
  CHECK(got.buckets == 1);
  CHECK(got.moved > 0);
  CHECK(got.walked < 2 * gets.walked);
  CHECK(got.fences > 3000 * 3);
}

TEST_CASE("variants do not disturb each other") {
  const cache::Geometry some{1 << 16, 16};
  const MapReplay both =
      replay(4000, MapOperation::get, some, {{Policy::lru, true}, {Policy::lru, false}});
  CHECK(both.missed[0] == replay(4000, MapOperation::get, some, {{Policy::lru, true}}).missed[0]);
  CHECK(both.missed[1] == replay(4000, MapOperation::get, some, {{Policy::lru, false}}).missed[0]);
}

TEST_CASE("what cannot be replayed is refused") {
  const auto code = [](std::uint64_t operations, std::uint64_t value_bytes, bool variant) {
    MapReplayPlan plan;
    plan.operations = operations;
    plan.value_bytes = value_bytes;
    plan.geometry = tiny;
    if (variant) plan.variants.push_back({});
    Result<MapReplay> result = cache::replay_map(plan, MapOperation::get);
    return result ? Errc::os_error : result.error().code;
  };
  CHECK(code(0, 1, true) == Errc::bad_input);
  CHECK(code(200'000'000, 1, true) == Errc::bad_input);
  CHECK(code(10, 0, true) == Errc::bad_input);
  CHECK(code(10, 1, false) == Errc::bad_input);
}
