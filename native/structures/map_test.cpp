#include "structures/map.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <unordered_map>

#include "base/random.hpp"
#include "storelog/recorder.hpp"
#include "structures/test_media.hpp"

using namespace nearfar;
using namespace nearfar::structures;
using structures::test::Buffer;

namespace {

struct Wide { // too wide for a word, so in a record
  std::uint64_t a, b, c;
  bool operator==(const Wide&) const = default;
};

template <class T>
T made(std::uint64_t number);
template <>
std::uint64_t made(std::uint64_t number) {
  return number; // 0 and its neighbors are keys as good as any
}
template <>
Wide made(std::uint64_t number) {
  return {number, ~number, number * number};
}
template <>
std::string made(std::uint64_t number) {
  return std::string(number % 97 * (number % 13 == 0 ? 200 : 1), 'x') + std::to_string(number);
}

template <class Key, class Value, unsigned groups>
void drive_against_a_model(std::uint64_t seed) {
  using KeyOut = typename Stored<Key>::Out;
  using ValueOut = typename Stored<Value>::Out;
  Buffer buffer(24 << 20);
  auto medium = buffer.medium();
  using Tested = Map<Pmem, Key, Value, groups>;
  auto map = std::move(*Tested::open(*medium, buffer.root<MapRoot>()));
  std::unordered_map<std::uint64_t, std::uint64_t> model;
  Random random(seed);
  for (int step = 0; step < 20000; ++step) {
    const std::uint64_t k = random.below(2000) - 5; // UINT64_MAX among them
    const std::uint64_t v = random.below(5000);
    const KeyOut key = made<KeyOut>(k);
    switch (random.below(5)) {
    case 0: CHECK(*map->insert(key, made<ValueOut>(v)) == model.emplace(k, v).second); break;
    case 1:
      CHECK(*map->put(key, made<ValueOut>(v)) == !model.contains(k));
      model[k] = v;
      break;
    case 2: CHECK(*map->remove(key) == (model.erase(k) == 1)); break;
    default:
      ValueOut value{};
      CHECK(map->get(key, value) == model.contains(k));
      if (model.contains(k)) CHECK(value == made<ValueOut>(model[k]));
    }
    if (step % 4000 == 1500) {
      CHECK(map->verify());
      map = std::move(*Tested::open(*medium, buffer.root<MapRoot>()));
    }
    if (step == 9000) {
      CHECK(map->clear());
      model.clear();
    }
  }
  CHECK(map->size() == model.size());
  std::size_t seen = 0;
  map->for_each([&](const KeyOut& key, const ValueOut& value) {
    ++seen;
    ValueOut again{};
    CHECK(map->get(key, again));
    CHECK(again == value);
  });
  CHECK(seen == model.size());
}

using Words = Map<Pmem, std::uint64_t, std::uint64_t>;

/// Clears a map in the middle of a write, at its first flush.
class Clearing final : public storelog::Listener {
public:
  explicit Clearing(Words& map) : map_(map) {}
  bool record(storelog::EventKind kind, const void*, std::size_t, storelog::Site) override {
    if (kind != storelog::EventKind::flush || is_tried_) return true;
    is_tried_ = true;
    const Status cleared = map_.clear();
    is_refused_ = !cleared && cleared.error().code == Errc::bad_input;
    return true;
  }
  bool is_refused() const { return is_refused_; }

private:
  Words& map_;
  bool is_tried_ = false;
  bool is_refused_ = false;
};

} // namespace

TEST_CASE("a map of words is a map") {
  drive_against_a_model<std::uint64_t, std::uint64_t, 2>(1);
  drive_against_a_model<std::uint64_t, std::uint64_t, 16>(2);
}

TEST_CASE("a map of records is a map") {
  drive_against_a_model<std::uint64_t, Wide, 8>(3);
  drive_against_a_model<Bytes, std::uint64_t, 2>(4);
  drive_against_a_model<Bytes, Bytes, 4>(5);
}

TEST_CASE("an insert takes one fence, growth included") {
  Buffer buffer(16 << 20);
  auto medium = buffer.medium();
  auto map =
      std::move(*Map<Pmem, std::uint64_t, std::uint64_t>::open(*medium, buffer.root<MapRoot>()));
  const storelog::Counters before = storelog::counters();
  for (std::uint64_t i = 0; i < 100000; ++i)
    CHECK(*map->insert(i, i));
  const storelog::Counters spent = storelog::counters() - before;
  CHECK(spent.fences >= 100000);
  CHECK(spent.fences <= 101000);
  CHECK(map->verify());
}

TEST_CASE("a full pool is an error and leaves the map as it was") {
  Buffer buffer(600 << 10);
  auto medium = buffer.medium();
  using Tested = Map<Pmem, std::uint64_t, Bytes>;
  auto map = std::move(*Tested::open(*medium, buffer.root<MapRoot>()));
  const std::string value(300, 'v');
  std::uint64_t stored = 0;
  for (;; ++stored) {
    const Result<bool> added = map->insert(stored, value);
    if (added) continue;
    CHECK(added.error().code == Errc::no_space);
    break;
  }
  CHECK(stored > 500);
  CHECK(map->size() == stored);
  CHECK(map->verify());
  std::string found;
  for (std::uint64_t i = 0; i < stored; ++i)
    CHECK((map->get(i, found) && found == value));
  CHECK_FALSE(map->contains(stored));
  for (std::uint64_t i = 0; i < stored; ++i) { // what is removed makes room, and nothing leaks
    CHECK(map->remove(i));
    const Result<bool> again = map->insert(i, value);
    CHECK(again);
  }
  std::vector<std::pair<std::uint64_t, std::string_view>> more;
  for (std::uint64_t i = 0; i < 1000; ++i)
    more.emplace_back(i + stored, value);
  const Status loaded = map->bulk_load(more);
  CHECK((!loaded && loaded.error().code == Errc::no_space));
  CHECK(map->size() >= stored);
  CHECK(map->verify());
}

TEST_CASE("bulk loading takes a fence a batch") {
  Buffer buffer(16 << 20);
  auto medium = buffer.medium();
  using Tested = Map<Pmem, std::uint64_t, Wide>;
  auto map = std::move(*Tested::open(*medium, buffer.root<MapRoot>()));
  std::vector<std::pair<std::uint64_t, Wide>> pairs;
  for (std::uint64_t i = 0; i < 20000; ++i)
    pairs.emplace_back(i % 15000, made<Wide>(i)); // some twice: the later one counts
  const storelog::Counters before = storelog::counters();
  CHECK(map->bulk_load(pairs));
  CHECK((storelog::counters() - before).fences < 500);
  CHECK(map->size() == 15000);
  Wide found{};
  CHECK((map->get(4999, found) && found == made<Wide>(19999)));
  CHECK(map->verify());
}

TEST_CASE("verify and open name what is damaged") {
  Buffer buffer(1 << 20);
  auto medium = buffer.medium();
  using Tested = Map<Pmem, std::uint64_t, Bytes, 2>;
  auto map = std::move(*Tested::open(*medium, buffer.root<MapRoot>()));
  for (std::uint64_t i = 0; i < 300; ++i)
    CHECK(*map->insert(i, "value"));
  auto& root = buffer.root<MapRoot>();
  const std::vector<std::byte> good(buffer.base(), buffer.base() + buffer.bytes());
  Random random(7);
  int refused = 0;
  for (int trial = 0; trial < 500; ++trial) { // never a crash; what is refused says where
    std::memcpy(buffer.base(), good.data(), good.size());
    auto* births = medium->at<std::uint64_t>(root.segments.births.chunk[0]);
    auto* slots = medium->at<std::uint64_t>(root.segments.segments.chunk[0]);
    if (trial % 2 == 0)
      births[random.below(4)] ^= std::uint64_t{1} << random.below(64);
    else
      slots[random.below(512)] ^= std::uint64_t{1} << random.below(64);
    auto opened = Tested::open(*medium, root);
    if (!opened) CHECK(opened.error().code == Errc::failed_check);
    refused += !opened || !(*opened)->verify();
  }
  CHECK(refused > 250);
}

TEST_CASE("many keys are looked up as each by itself") {
  Dram medium;
  auto root = std::make_unique<MapRoot>();
  *root = {};
  auto map = std::move(*Map<Dram, std::uint64_t, std::uint64_t>::open(medium, *root));
  const auto agrees = [&](std::uint64_t count) {
    std::vector<std::uint64_t> keys(count), values(count);
    const auto found = std::make_unique<bool[]>(count);
    for (std::uint64_t i = 0; i < count; ++i)
      keys[i] = 7 * i;
    map->get_many(keys, values, std::span(found.get(), count));
    for (std::uint64_t i = 0; i < count; ++i) {
      std::uint64_t value = 0;
      CHECK(found[i] == map->get(keys[i], value));
      if (found[i]) CHECK(values[i] == value);
    }
  };
  agrees(3); // of an empty map, which has no segment
  for (std::uint64_t key = 0; key < 20000; ++key)
    CHECK(map->insert(key, ~key));
  for (const std::uint64_t count : {0u, 1u, 31u, 32u, 33u, 5000u})
    agrees(count);
}

TEST_CASE("a map is not cleared while a thread writes to it") {
  Buffer buffer(16 << 20);
  auto medium = buffer.medium();
  auto map = std::move(*Words::open(*medium, buffer.root<MapRoot>()));
  CHECK(map->insert(1, 10));
  Clearing clearing(*map);
  {
    const storelog::Attached attached(&clearing);
    CHECK(map->put(1, 20));
  }
  CHECK(clearing.is_refused());
  CHECK(map->size() == 1);
  CHECK(map->verify());
  CHECK(map->clear()); // no thread writes now
  CHECK(map->size() == 0);
}

TEST_CASE("readers and writers at once see whole entries") {
  Dram medium;
  auto root = std::make_unique<MapRoot>();
  *root = {};
  using Tested = Map<Dram, std::uint64_t, Wide>;
  auto map = std::move(*Tested::open(medium, *root));
  constexpr std::uint64_t keys = 3000;
  std::atomic<bool> over{false};
  std::atomic<int> torn{0};
  std::thread reader([&] {
    Random random(9);
    Wide found{};
    std::array<Wide, 40> many{};
    std::array<bool, 40> is_found{};
    while (!over.load()) {
      if (map->get(random.below(keys), found) && found != made<Wide>(found.a)) ++torn;
      std::array<std::uint64_t, 40> asked{};
      for (std::uint64_t& key : asked)
        key = random.below(keys);
      map->get_many(asked, many, is_found);
      for (std::size_t i = 0; i < asked.size(); ++i)
        if (is_found[i] && many[i] != made<Wide>(many[i].a)) ++torn;
    }
  });
  const auto write = [&](std::uint64_t seed) {
    Random random(seed);
    for (int i = 0; i < 20000; ++i) {
      const std::uint64_t key = random.below(keys);
      if (i % 4 == 0)
        CHECK(map->remove(key));
      else
        CHECK(map->put(key, made<Wide>(random.next())));
    }
  };
  std::thread writer(write, 10);
  write(11);
  writer.join();
  over = true;
  reader.join();
  CHECK(torn == 0);
  CHECK(map->verify());
}
