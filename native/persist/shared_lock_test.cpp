#include "persist/shared_lock.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "persist/dirty_lines.hpp"

using namespace nearfar::persist;

TEST_CASE("writers exclude all others, readers exclude writers, and everybody's turn comes") {
  SharedLock lock;
  long first = 0; // always equal, for who holds the lock
  long second = 0;
  constexpr int rounds = 3000;
  const auto write = [&] {
    for (int i = 0; i < rounds; ++i) {
      const std::lock_guard held(lock);
      ++first;
      ++second;
    }
  };
  std::vector<long> seen(2);
  const auto read = [&](long& wrong) {
    for (int i = 0; i < rounds; ++i) {
      const std::shared_lock held(lock);
      wrong += first != second;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back(write);
    threads.emplace_back(read, std::ref(seen[static_cast<std::size_t>(i)]));
  }
  for (std::thread& thread : threads)
    thread.join();
  CHECK(seen[0] + seen[1] == 0); // torn
  CHECK(first == 2 * rounds);
  CHECK(second == 2 * rounds);
}

TEST_CASE("lines are noted once where they can be, and never left out") {
  DirtyLines dirty(4);
  dirty.add(8, 8);
  dirty.add(16, 8);
  dirty.add(120, 16); // two lines
  CHECK(dirty.one_a_unit(64) == std::vector<std::uint64_t>{0, 64, 128});
  dirty.add(8192, 1);
  CHECK(dirty.one_a_unit(4096) == std::vector<std::uint64_t>{0, 8192});
  dirty.clear();
  CHECK(dirty.empty());
  for (std::uint64_t line = 0; line < 1000; ++line) // more than the table has places
    dirty.add(line * 64, 64);
  dirty.add(0, 64);
  std::vector<std::uint64_t> all = dirty.one_a_unit(64);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  CHECK(all.size() == 1000);
}
