// Concurrent threads: blocks are freed by other threads, threads start and exit, and memory is
// returned and children are forked meanwhile.
#include <nearfar/hmalloc.h>

#include <atomic>
#include <cstring>
#include <doctest/doctest.h>
#include <filesystem>
#include <iterator>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "alloc/allocator.hpp"
#include "base/random.hpp"

namespace {

using nearfar::Random;

/// Blocks passed from thread to thread; the first word of each is its size.
class Exchange {
public:
  void swap_one(Random& random) {
    std::size_t size = sizeof(std::size_t) + random.below(std::size_t{16} << random.below(14));
    auto* block = static_cast<std::size_t*>(hm_malloc(HM_NEAR, size));
    *block = size;
    std::size_t* old = places_[random.below(place_count)].exchange(block);
    if (old == nullptr) return;
    if (*old > hm_usable_size(old) || *old < sizeof(std::size_t)) wrong_.fetch_add(1);
    hm_free(old);
  }
  void drain() {
    for (auto& place : places_)
      hm_free(place.exchange(nullptr));
  }
  int wrong() const { return wrong_.load(); }

private:
  static constexpr std::size_t place_count = 512;
  std::atomic<std::size_t*> places_[place_count] = {};
  std::atomic<int> wrong_{0};
};

void churn(Exchange& exchange, std::uint64_t seed, int steps) {
  Random random(seed);
  for (int i = 0; i < steps; ++i)
    exchange.swap_one(random);
}

} // namespace

TEST_CASE("blocks can be freed by other threads than those that allocated them") {
  Exchange exchange;
  for (int round = 0; round < 5; ++round) {
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < 4; ++t)
      threads.emplace_back(churn, std::ref(exchange), t + 10, 10'000);
    hm_trim(HM_NEAR);
    for (std::thread& thread : threads)
      thread.join();
  }
  CHECK(exchange.wrong() == 0);
  exchange.drain();
}

namespace {

std::ptrdiff_t thread_count() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

std::uint64_t returned_bytes() {
  hm_tier_stats stats;
  return hm_stats(HM_NEAR, &stats) == 0 ? stats.returned_bytes : 0;
}

} // namespace

TEST_CASE("freed memory is returned by a later call, without a thread of the library") {
  constexpr std::size_t count = 40, bytes = 1'000'000;
  constexpr int default_ms = 1000, short_ms = 250;
  nearfar::alloc::process_allocator.decay.set_ms(short_ms);
  void* blocks[count];
  for (void*& block : blocks)
    block = std::memset(hm_malloc(HM_NEAR, bytes), 1, bytes);
  hm_free(hm_malloc(HM_NEAR, bytes)); // counts the ticks so far
  const std::uint64_t before = returned_bytes();
  const std::ptrdiff_t threads = thread_count();
  for (void* block : blocks)
    hm_free(block);
  CHECK(thread_count() == threads);
  for (int i = 0; i < 3; ++i) { // longer than the decay time, in total than two
    std::this_thread::sleep_for(std::chrono::milliseconds(short_ms + 50));
    hm_free(hm_malloc(HM_NEAR, bytes));
  }
  CHECK(returned_bytes() - before > count * bytes * 9 / 10);
  nearfar::alloc::process_allocator.decay.set_ms(default_ms);
}

TEST_CASE("a pause is one tick of the decay, however long") {
  nearfar::alloc::Decay decay;
  decay.set_ms(1);
  REQUIRE(decay.advance());
  const std::uint8_t before = decay.tick();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK(decay.advance());
  CHECK(decay.tick() == before + 1);
}

#ifndef __SANITIZE_THREAD__ // which does not support threads in a child
TEST_CASE("children forked while threads allocate can allocate and free") {
  Exchange exchange;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 2; ++t)
    threads.emplace_back([&exchange, &stop, t] {
      for (std::uint64_t i = 0; !stop.load(); ++i)
        churn(exchange, t * 1000 + i, 100);
    });
  int failed = 0;
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      Exchange own;
      churn(own, static_cast<std::uint64_t>(i), 300);
      own.drain();
      _exit(own.wrong() == 0 ? 0 : 1);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) ++failed;
  }
  stop.store(true);
  for (std::thread& thread : threads)
    thread.join();
  CHECK(failed == 0);
  CHECK(exchange.wrong() == 0);
  exchange.drain();
}
#endif
