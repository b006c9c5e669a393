#include <atomic>
#include <cstdio>
#include <doctest/doctest.h>
#include <thread>
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

constexpr persist::Layout layout{"pmdk_map_test", 1};

/// Shows when it is torn. It names no object: the maps do not look.
PMEMoid value_of(std::uint64_t word) { return {word, ~word}; }
bool whole(PMEMoid value) { return value.off == ~value.pool_uuid_lo; }

/// Pools on a disk persist by msync: two minutes for these tests.
tier::Spec place(const std::string& path) {
  const bool tmpfs = path.rfind("/dev/shm", 0) == 0;
  return *tier::parse(((tmpfs ? "shm:" : "file:") + path).c_str());
}

/// A map in a pool, or in DRAM, where it cannot be closed and opened again, but taken up anew.
template <class Map, class Objects = typename Map::Objects>
class Home {
public:
  explicit Home(std::size_t bytes = 32 << 20) : where_(place(folder_.path("a.pool"))) {
    persist::PoolOptions options;
    options.bytes = bytes;
    options.root_bytes = sizeof(PMEMoid);
    take(Pool::create(where_, layout, options));
  }
  Map& map() { return *map_; }
  PMEMoid& root() { return *reinterpret_cast<PMEMoid*>(pool_->root()); }
  PMEMobjpool* pool() { return pool_->handle(); }
  void close() {
    map_.reset();
    pool_.reset();
  }
  void reopen() {
    close();
    take(Pool::open(where_, layout));
  }
  bool sound() { return std::system(("pmempool check -q " + folder_.path("a.pool")).c_str()) == 0; }

private:
  void take(Result<Pool> pool) {
    REQUIRE(bool(pool));
    pool_ = std::make_unique<Pool>(std::move(*pool));
    objects_ = std::make_unique<Objects>(*pool_);
    auto map = Map::open(*objects_, root());
    REQUIRE(bool(map));
    map_ = std::move(*map);
  }
  const test::Folder folder_ = test::Folder::quick();
  tier::Spec where_;
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<Objects> objects_;
  std::unique_ptr<Map> map_;
};

template <class Map>
class Home<Map, DramObjects> {
public:
  Home() { reopen(); }
  Map& map() { return *map_; }
  void reopen() { map_ = std::move(*Map::open(objects_, root_)); }

private:
  DramObjects objects_;
  PMEMoid root_ = OID_NULL;
  std::unique_ptr<Map> map_;
};

template <class Map>
std::unordered_map<std::uint64_t, std::uint64_t> contents(Map& map) {
  std::unordered_map<std::uint64_t, std::uint64_t> found;
  map.for_each([&](std::uint64_t key, PMEMoid value) {
    CHECK(whole(value));
    CHECK(found.emplace(key, value.pool_uuid_lo).second);
  });
  return found;
}

/// Random operations on few keys, so that chains, tombstones and growth both ways come about.
template <class Map>
void drive(Map& map, std::unordered_map<std::uint64_t, std::uint64_t>& model, Random& random,
           int operations, std::uint64_t removals_in_8) {
  for (int i = 0; i < operations; ++i) {
    const std::uint64_t key = random.below(3000) * 0x9e3779b97f4a7c15u >> 1;
    const auto known = model.find(key);
    const std::optional<PMEMoid> found = map.get(key);
    REQUIRE(found.has_value() == (known != model.end()));
    if (found) REQUIRE(found->pool_uuid_lo == known->second);
    if (random.below(8) < removals_in_8) {
      Result<std::optional<PMEMoid>> gone = map.remove(key);
      REQUIRE(bool(gone));
      REQUIRE(gone->has_value() == found.has_value());
      if (found) REQUIRE((*gone)->pool_uuid_lo == known->second);
      model.erase(key);
    } else {
      const std::uint64_t word = known == model.end() ? random.below(1'000'000) : known->second;
      Result<bool> fresh = map.insert(key, value_of(word));
      REQUIRE(bool(fresh));
      REQUIRE(*fresh == !found);
      model[key] = word;
    }
    REQUIRE(map.size() == model.size());
  }
  CHECK(contents(map) == model);
  CHECK(map.verify());
}

using AtomicInPool = MapAtomic<PoolObjects>;
using TxInPool = MapTx<PoolObjects>;
using RpInPool = MapRp<PoolObjects>;
using AtomicInDram = MapAtomic<DramObjects>;
using TxInDram = MapTx<DramObjects>;
using RpInDram = MapRp<DramObjects>;

} // namespace

TEST_CASE_TEMPLATE("a map holds what was put in, through growth, shrinking and reopening", Map,
                   AtomicInPool, TxInPool, RpInPool, AtomicInDram, TxInDram, RpInDram) {
  Home<Map> home;
  std::unordered_map<std::uint64_t, std::uint64_t> model;
  Random random(11);
  for (const std::uint64_t removals : {2u, 7u, 3u}) {
    drive(home.map(), model, random, 6000, removals);
    home.reopen();
    CHECK(contents(home.map()) == model);
  }
}

TEST_CASE("a bucket more splits its parent and no other") {
  for (std::uint64_t buckets = initial_buckets; buckets < 500; ++buckets)
    for (std::uint64_t hash = 0; hash < 2000; ++hash) {
      const std::uint64_t before = bucket_of(hash, buckets);
      const std::uint64_t after = bucket_of(hash, buckets + 1);
      REQUIRE(before < buckets);
      REQUIRE((after == before || (after == buckets && before == parent_of(buckets))));
    }
  using Heads = Buckets<PMEMoid>;
  for (std::uint64_t bucket = 0; bucket < 5000; ++bucket) {
    const std::uint64_t first = Heads::first_of(Heads::segment_of(bucket));
    REQUIRE(first <= bucket);
    REQUIRE((bucket - first + 1) * sizeof(PMEMoid) <= Heads::bytes_of(Heads::segment_of(bucket)));
  }
}

TEST_CASE_TEMPLATE("a chained map grows and shrinks by a bucket an operation", Map, AtomicInPool,
                   TxInPool, AtomicInDram, TxInDram) {
  Home<Map> home;
  Map& map = home.map();
  Random random(5);
  std::vector<std::uint64_t> keys;
  for (std::uint64_t i = 1; i <= 2000; ++i) {
    const std::uint64_t before = map.capacity();
    keys.push_back(random.next() >> 1);
    REQUIRE(*map.insert(keys.back(), value_of(i)));
    REQUIRE(map.capacity() <= before + 1);
    REQUIRE(2 * i <= 3 * map.capacity() + 3);
  }
  CHECK(map.capacity() > 1300);
  for (const std::uint64_t key : keys) {
    const std::uint64_t before = map.capacity();
    REQUIRE((*map.remove(key)).has_value());
    REQUIRE(map.capacity() + 1 >= before);
    REQUIRE(map.capacity() <= std::max(map.size() + 1, initial_buckets));
  }
  CHECK(map.capacity() == initial_buckets);
  CHECK(map.verify());
}

TEST_CASE_TEMPLATE("map_rp grows at half full", Map, RpInPool, RpInDram) {
  Home<Map> home;
  Random random(5);
  std::uint64_t capacity = 16;
  for (std::uint64_t i = 1; i <= 2000; ++i) {
    REQUIRE(*home.map().insert(random.next() >> 1, value_of(i)));
    if (i >= capacity / 2) capacity *= 2;
    REQUIRE(home.map().capacity() == capacity);
  }
}

TEST_CASE_TEMPLATE("a full pool is an error, and the map keeps what it had", Map, AtomicInPool,
                   TxInPool, RpInPool) {
  Home<Map> home(8 << 20);
  std::uint64_t stored = 0;
  for (;; ++stored) {
    Result<bool> fresh = home.map().insert(stored + 1, value_of(stored));
    if (fresh) continue;
    CHECK(fresh.error().code == Errc::no_space);
    break;
  }
  CHECK(stored > 500); // map_rp wants both its arrays in one piece
  CHECK(home.map().verify());
  home.close();
  CHECK(home.sound());
  home.reopen();
  CHECK(home.map().verify());
  REQUIRE(home.map().size() == stored);
  for (std::uint64_t i = 0; i < stored; ++i)
    REQUIRE(home.map().get(i + 1)->pool_uuid_lo == i);
  CHECK(home.map().get(stored + 1).has_value() == false);
  for (std::uint64_t i = 0; i < stored; ++i) { // what is removed makes room
    REQUIRE((*home.map().remove(i + 1)).has_value());
    if (i % 2 == 1) REQUIRE(*home.map().insert(i + 1, value_of(i)));
  }
  CHECK(home.map().size() == stored / 2);
  CHECK(home.map().verify());
}

TEST_CASE("what map_tx did in its caller's transaction is undone with it") {
  Home<TxInPool> home;
  for (std::uint64_t i = 0; i < 100; ++i)
    REQUIRE(*home.map().insert(i, value_of(i)));
  const auto before = contents(home.map());
  REQUIRE(pmemobj_tx_begin(home.pool(), nullptr, TX_PARAM_NONE) == 0);
  for (std::uint64_t i = 100; i < 300; ++i)
    REQUIRE(*home.map().insert(i, value_of(i)));
  for (std::uint64_t i = 0; i < 250; ++i)
    REQUIRE((*home.map().remove(i)).has_value());
  pmemobj_tx_abort(ECANCELED);
  (void)pmemobj_tx_end();
  CHECK(contents(home.map()) == before);
  CHECK(home.map().verify());
}

TEST_CASE_TEMPLATE("verify reports a wrong count", Map, AtomicInPool, TxInPool, RpInPool) {
  Home<Map> home;
  REQUIRE(*home.map().insert(1, value_of(1)));
  CHECK(home.map().verify());
  auto* entries = direct<std::uint64_t>(home.root());
  if constexpr (!std::is_same_v<Map, RpInPool>) entries += sizeof(ChainHash) / sizeof *entries;
  REQUIRE(*entries == 1);
  *entries = 2;
  CHECK(home.map().verify().error().code == Errc::failed_check);
}

TEST_CASE_TEMPLATE("readers and writers at once see whole entries", Map, AtomicInPool, TxInPool,
                   RpInPool, AtomicInDram, TxInDram, RpInDram) {
  Home<Map> home;
  Map& map = home.map();
  constexpr std::uint64_t keys = 400; // even ones stay, odd ones come and go
  for (std::uint64_t key = 0; key < keys; key += 2)
    REQUIRE(*map.insert(key, value_of(key)));
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    Random random(9);
    while (!over.load()) {
      const std::uint64_t key = random.below(keys);
      const std::optional<PMEMoid> found = map.get(key);
      wrong += found ? !whole(*found) || found->pool_uuid_lo != key : key % 2 == 0;
      wrong += map.size() < keys / 2;
    }
  });
  const auto write = [&](std::uint64_t seed) {
    Random random(seed);
    for (int i = 0; i < 2000; ++i) {
      const std::uint64_t key = random.below(keys / 2) * 2 + 1;
      const bool done = i % 2 == 0 ? bool(map.insert(key, value_of(key))) : bool(map.remove(key));
      wrong += !done;
    }
  };
  std::thread writer(write, 10);
  write(11);
  writer.join();
  over = true;
  reader.join();
  CHECK(wrong == 0);
  CHECK(map.verify());
}
