#include <cstdio>
#include <doctest/doctest.h>
#include <unordered_map>
#include <vector>

#include "base/random.hpp"
#include "persist/pool.hpp"
#include "structures/map_atomic.hpp"
#include "structures/map_rp.hpp"
#include "structures/map_tx.hpp"
#include "test_support.hpp"

using namespace nearfar;
using persist::Pool;
using namespace structures;

namespace {

constexpr persist::Layout layout{"pmdk_maps_test", 1};

PMEMoid value_of(std::uint64_t word) { return {word, ~word}; }
bool same(PMEMoid a, PMEMoid b) { return a.off == b.off && a.pool_uuid_lo == b.pool_uuid_lo; }

/// Pools on a disk persist by msync: two minutes for these tests.
tier::Spec place(const std::string& path) {
  const bool tmpfs = path.rfind("/dev/shm", 0) == 0;
  return *tier::parse(((tmpfs ? "shm:" : "file:") + path).c_str());
}

Pool make_pool(const tier::Spec& where, std::size_t bytes) {
  persist::PoolOptions options;
  options.bytes = bytes;
  options.root_bytes = sizeof(PMEMoid);
  Result<Pool> pool = Pool::create(where, layout, options);
  REQUIRE(bool(pool));
  return std::move(*pool);
}

PMEMoid* handle(const Pool& pool) { return reinterpret_cast<PMEMoid*>(pool.root()); }

/// Random operations on few keys, so that chains, tombstones and growth both ways come about.
template <class Map>
void drive(Map& map, std::unordered_map<std::uint64_t, std::uint64_t>& twin, Random& random,
           int operations, std::uint64_t removals_in_8) {
  for (int i = 0; i < operations; ++i) {
    const std::uint64_t key = random.below(3000) * 0x9e3779b97f4a7c15u >> 1;
    const auto found = twin.find(key);
    if (random.below(8) < removals_in_8) {
      Result<PMEMoid> gone = map.remove(key);
      REQUIRE(bool(gone));
      REQUIRE(same(*gone, found == twin.end() ? OID_NULL : value_of(found->second)));
      twin.erase(key);
    } else if (found == twin.end()) {
      const std::uint64_t word = random.below(1'000'000);
      Result<bool> fresh = map.insert(key, value_of(word));
      REQUIRE(bool(fresh));
      REQUIRE(*fresh);
      twin[key] = word;
    } else {
      REQUIRE(same(map.get(key), value_of(found->second)));
      Result<bool> fresh = map.insert(key, value_of(found->second));
      REQUIRE(bool(fresh));
      REQUIRE(!*fresh);
    }
    REQUIRE(map.size() == twin.size());
  }
  for (const auto& [key, word] : twin)
    REQUIRE(same(map.get(key), value_of(word)));
}

} // namespace

TEST_CASE_TEMPLATE("a map holds what was put in, through growth, shrinking and reopening", Map,
                   MapAtomic, MapTx, MapRp) {
  const test::Folder folder = test::Folder::quick();
  const tier::Spec where = place(folder.path("a.pool"));
  std::unordered_map<std::uint64_t, std::uint64_t> twin;
  Random random(11);
  {
    const Pool pool = make_pool(where, 32 << 20);
    Result<Map> map = Map::create(pool.handle(), handle(pool));
    REQUIRE(bool(map));
    drive(*map, twin, random, 6000, 2);
  }
  for (const std::uint64_t removals : {7u, 3u}) {
    Result<Pool> pool = Pool::open(where, layout);
    REQUIRE(bool(pool));
    Result<Map> map = Map::open(pool->handle(), *handle(*pool));
    REQUIRE(bool(map));
    REQUIRE(map->size() == twin.size());
    drive(*map, twin, random, 6000, removals);
  }
}

TEST_CASE("buckets double at chains over 10, or over 5 at more than 2 entries a bucket") {
  CHECK(chain_overflows(11, 11, 10));
  CHECK_FALSE(chain_overflows(10, 20, 10));
  CHECK(chain_overflows(6, 21, 10));
  CHECK_FALSE(chain_overflows(6, 20, 10));
  CHECK_FALSE(chain_overflows(5, 1000, 10));
}

TEST_CASE("the two chained maps grow alike, and map_rp at half full") {
  const test::Folder folder = test::Folder::quick();
  const Pool first = make_pool(place(folder.path("1")), 32 << 20);
  const Pool second = make_pool(place(folder.path("2")), 32 << 20);
  const Pool third = make_pool(place(folder.path("3")), 32 << 20);
  Result<MapAtomic> atomic = MapAtomic::create(first.handle(), handle(first));
  Result<MapTx> tx = MapTx::create(second.handle(), handle(second));
  Result<MapRp> rp = MapRp::create(third.handle(), handle(third));
  Random random(5);
  std::uint64_t capacity = 16;
  for (std::uint64_t i = 1; i <= 2000; ++i) {
    const std::uint64_t key = random.next() >> 1;
    REQUIRE(*atomic->insert(key, value_of(i)));
    REQUIRE(*tx->insert(key, value_of(i)));
    REQUIRE(*rp->insert(key, value_of(i)));
    REQUIRE(atomic->buckets() == tx->buckets());
    if (i >= capacity / 2) capacity *= 2;
    REQUIRE(rp->capacity() == capacity);
  }
  CHECK(atomic->buckets() > 200);
}

TEST_CASE_TEMPLATE("a full pool is an error, and the map keeps what it had", Map, MapAtomic, MapTx,
                   MapRp) {
  const test::Folder folder = test::Folder::quick();
  const tier::Spec where = place(folder.path("a.pool"));
  std::uint64_t stored = 0;
  {
    const Pool pool = make_pool(where, 8 << 20);
    Result<Map> map = Map::create(pool.handle(), handle(pool));
    REQUIRE(bool(map));
    for (;; ++stored) {
      Result<bool> fresh = map->insert(stored + 1, value_of(stored));
      if (fresh) continue;
      CHECK(fresh.error().code == Errc::no_space);
      break;
    }
    CHECK(stored > 500); // map_rp wants both its arrays in one piece
    CHECK(map->size() == stored);
  }
  CHECK(std::system(("pmempool check -q " + folder.path("a.pool")).c_str()) == 0);
  Result<Pool> pool = Pool::open(where, layout);
  REQUIRE(bool(pool));
  Result<Map> map = Map::open(pool->handle(), *handle(*pool));
  REQUIRE(map->size() == stored);
  for (std::uint64_t i = 0; i < stored; ++i)
    REQUIRE(same(map->get(i + 1), value_of(i)));
}
