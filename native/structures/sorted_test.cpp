#include <doctest/doctest.h>

#include <atomic>
#include <deque>
#include <set>
#include <thread>

#include "base/random.hpp"
#include "structures/list.hpp"
#include "structures/queue.hpp"
#include "structures/skip_list.hpp"
#include "structures/test_media.hpp"

using namespace nearfar;
using namespace nearfar::structures;
using structures::test::Buffer;
using Number = std::uint64_t;

TEST_CASE_TEMPLATE("a sorted structure is a sorted set", Tested, List<Pmem, Number>,
                   SkipList<Pmem, Number>) {
  Buffer buffer(8 << 20);
  auto medium = buffer.medium();
  auto tested = std::move(*Tested::open(*medium, buffer.root<ChainRoot>()));
  std::set<Number> model;
  Random random(1);
  for (int step = 0; step < 20000; ++step) {
    const Number key = random.below(600);
    switch (random.below(3)) {
    case 0: CHECK(*tested->insert(key) == model.insert(key).second); break;
    case 1: CHECK(*tested->remove(key) == (model.erase(key) == 1)); break;
    default: CHECK(tested->contains(key) == model.contains(key));
    }
    if (step % 4000 == 1000) {
      CHECK(tested->verify());
      tested = std::move(*Tested::open(*medium, buffer.root<ChainRoot>()));
    }
    if (step == 5000) {
      CHECK(tested->clear());
      model.clear();
    }
    if (step % 3000 == 2500) {
      const std::vector<Number> more = {5, random.below(600), 5, 700, 0, random.below(600)};
      CHECK(tested->bulk_load(more));
      model.insert(more.begin(), more.end());
      CHECK(tested->verify());
    }
  }
  CHECK(tested->size() == model.size());
  std::vector<Number> seen;
  tested->for_each([&](Number key) { seen.push_back(key); });
  CHECK(seen == std::vector<Number>(model.begin(), model.end()));
}

TEST_CASE("a queue is a queue") {
  Buffer buffer(8 << 20);
  auto medium = buffer.medium();
  using Tested = Queue<Pmem, Number>;
  auto queue = std::move(*Tested::open(*medium, buffer.root<ChainRoot>()));
  std::deque<Number> model;
  Random random(2);
  for (Number step = 0; step < 20000; ++step) {
    if (random.below(100) < (step / 2000 % 2 == 0 ? 60 : 40)) {
      CHECK(queue->push(step));
      model.push_back(step);
    } else {
      Result<std::optional<Number>> value = queue->pop();
      REQUIRE(value);
      CHECK(value->has_value() == !model.empty());
      if (!model.empty()) {
        CHECK(*value == model.front());
        model.pop_front();
      }
    }
    CHECK(queue->front().has_value() == !model.empty());
    if (step % 3000 == 1500) {
      CHECK(queue->bulk_load({step, step + 1, step + 2}));
      model.insert(model.end(), {step, step + 1, step + 2});
    }
    if (step == 9000) {
      CHECK(queue->clear());
      model.clear();
    }
    if (step % 4000 == 1000) {
      CHECK(queue->verify());
      queue = std::move(*Tested::open(*medium, buffer.root<ChainRoot>()));
    }
  }
  std::deque<Number> seen;
  queue->for_each([&](Number value) { seen.push_back(value); });
  CHECK(seen == model);
  CHECK(queue->size() == model.size());
}

TEST_CASE_TEMPLATE("a full pool is an error and leaves all as it was", Tested, List<Pmem, Number>,
                   SkipList<Pmem, Number>) {
  Buffer buffer(140 << 10); // two chunks of 64 KiB
  auto medium = buffer.medium();
  auto tested = std::move(*Tested::open(*medium, buffer.root<ChainRoot>()));
  std::vector<Number> keys;
  for (Number i = 0; i < 8000; ++i)
    keys.push_back(i);
  CHECK(tested->bulk_load(keys));
  Number key = 10000;
  while (tested->insert(key))
    ++key;
  CHECK(tested->insert(key).error().code == Errc::no_space);
  CHECK(tested->bulk_load({1, 20000, 30000}).error().code == Errc::no_space);
  CHECK(tested->size() == 8192); // 128 KiB of nodes of 16 bytes
  CHECK(tested->verify());
  CHECK(*tested->remove(17));
  CHECK(*tested->insert(key));
}

TEST_CASE_TEMPLATE("readers and writers at once", Tested, List<Dram, Number>,
                   SkipList<Dram, Number>) {
  Dram medium;
  ChainRoot root{};
  auto tested = std::move(*Tested::open(medium, root));
  for (Number i = 0; i < 200; i += 2) // even keys stay
    CHECK(*tested->insert(i));
  std::atomic<bool> over{false};
  std::atomic<int> missed{0};
  std::thread reader([&] {
    Random random(3);
    while (!over.load())
      missed += !tested->contains(random.below(100) * 2);
  });
  const auto write = [&](Number seed) {
    Random random(seed);
    for (int i = 0; i < 5000; ++i) {
      const Number key = random.below(100) * 2 + 1;
      CHECK((random.below(2) == 0 ? tested->insert(key) : tested->remove(key)));
    }
  };
  std::thread writer(write, 4);
  write(5);
  writer.join();
  over = true;
  reader.join();
  CHECK(missed == 0);
  CHECK(tested->verify());
}

TEST_CASE("what several threads push is popped once, in the order of each") {
  Dram medium;
  ChainRoot root{};
  auto queue = std::move(*Queue<Dram, Number>::open(medium, root));
  constexpr Number each = 5000;
  const auto push = [&](Number thread) {
    for (Number i = 0; i < each; ++i)
      CHECK(queue->push(thread << 32 | i));
  };
  std::thread first(push, 0);
  std::thread second(push, 1);
  Number next[2] = {0, 0};
  while (next[0] + next[1] < 2 * each) {
    Result<std::optional<Number>> value = queue->pop();
    REQUIRE(value);
    if (!*value) continue;
    CHECK((**value & UINT32_MAX) == next[**value >> 32]++);
  }
  first.join();
  second.join();
  CHECK(queue->size() == 0);
  CHECK(queue->verify());
}

TEST_CASE("a chain that leads nowhere, back or astray is refused") {
  Buffer buffer(1 << 20);
  auto medium = buffer.medium();
  auto& root = buffer.root<ChainRoot>();
  using Tested = List<Pmem, Number>;
  auto list = std::move(*Tested::open(*medium, root));
  for (Number i = 0; i < 10; ++i)
    CHECK(*list->insert(i));
  Node<Number>* second = medium->at<Node<Number>>(medium->at<Node<Number>>(root.head)->next);
  const std::uint64_t good = second->next;
  for (const std::uint64_t wrong :
       {root.head, good + 8, std::uint64_t{1} << 40, std::uint64_t{3}}) {
    second->next = wrong;
    CHECK(Tested::open(*medium, root).error().code == Errc::failed_check);
    CHECK(list->verify().error().code == Errc::failed_check);
  }
  second->next = good;
  CHECK(list->verify());
}
