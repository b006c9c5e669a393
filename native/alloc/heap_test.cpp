// Heaps of the program in a tier.
#include <nearfar/hmalloc.h>

#include <cerrno>
#include <cstring>
#include <doctest/doctest.h>
#include <set>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "test_support.hpp"

using nearfar::test::status_in_child;

namespace {

hm_tier_stats stats_of(hm_heap* heap) {
  hm_tier_stats stats;
  hm_heap_stats(heap, &stats);
  return stats;
}

/// Allocates blocks of all sizes up to 1 MiB, and fills each with its number.
std::vector<unsigned char*> fill(hm_heap* heap) {
  std::vector<unsigned char*> blocks;
  for (std::size_t size = 1; size <= std::size_t{1} << 20; size += size / 4 + 1) {
    auto* block = static_cast<unsigned char*>(hm_heap_malloc(heap, size));
    REQUIRE(block != nullptr);
    std::memset(block, static_cast<int>(blocks.size()), size);
    blocks.push_back(block);
  }
  return blocks;
}

bool is_intact(const std::vector<unsigned char*>& blocks) {
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (blocks[i][0] != static_cast<unsigned char>(i)) return false;
  return true;
}

} // namespace

TEST_CASE("blocks of a heap are in its tier, and freed with it") {
  hm_tier_stats before;
  REQUIRE(hm_stats(HM_NEAR, &before) == 0);
  hm_heap* heap = hm_heap_create(HM_NEAR, 0);
  REQUIRE(heap != nullptr);
  CHECK(hm_heap_tier(heap) == HM_NEAR);
  const std::vector<unsigned char*> blocks = fill(heap);
  for (unsigned char* block : blocks) {
    CHECK(hm_tier_of(block) == HM_NEAR);
    CHECK(hm_heap_of(block) == heap);
  }
  CHECK(is_intact(blocks));
  CHECK(stats_of(heap).allocations == blocks.size());
  hm_tier_stats during;
  REQUIRE(hm_stats(HM_NEAR, &during) == 0);
  CHECK(during.live_bytes == before.live_bytes + stats_of(heap).live_bytes);
  hm_heap_destroy(heap);
  hm_tier_stats after;
  REQUIRE(hm_stats(HM_NEAR, &after) == 0);
  CHECK(after.live_bytes == before.live_bytes);
  CHECK(after.allocations == before.allocations + blocks.size());
  CHECK(after.frees == before.frees + blocks.size());
}

TEST_CASE("blocks of a heap are freed by hm_free and resized within the heap") {
  hm_heap* heap = hm_heap_create(HM_NEAR, 0);
  void* other = hm_malloc(HM_NEAR, 100);
  CHECK(hm_heap_of(other) == nullptr);
  CHECK(hm_heap_of(&errno) == nullptr);
  auto* block = static_cast<char*>(hm_heap_malloc(heap, 100));
  std::strcpy(block, "kept");
  for (const std::size_t size : {50'000ul, 3'000'000ul, 9'000'000ul, 600'000ul, 10ul}) {
    block = static_cast<char*>(hm_realloc(HM_KEEP, block, size));
    REQUIRE(block != nullptr);
    CHECK(std::string(block) == "kept");
    CHECK(hm_heap_of(block) == heap);
  }
  other = hm_heap_realloc(heap, other, 200);
  CHECK(hm_heap_of(other) == heap);
  CHECK(hm_move(other, HM_NEAR) == other);
  hm_free(other);
  hm_free(block);
  CHECK(stats_of(heap).live_bytes == 0);
  const void* again = hm_heap_memalign(heap, 4096, 100);
  CHECK(reinterpret_cast<std::uintptr_t>(again) % 4096 == 0);
  const void* large = hm_heap_memalign(heap, 1 << 20, 100);
  CHECK(reinterpret_cast<std::uintptr_t>(large) % (1 << 20) == 0);
  CHECK(hm_heap_of(large) == heap);
  hm_heap_destroy(heap);
  hm_heap_destroy(nullptr);
}

TEST_CASE("memory of a heap that was destroyed is zeroed for hm_heap_calloc") {
  for (int round = 0; round < 3; ++round) {
    hm_heap* heap = hm_heap_create(HM_NEAR, 0);
    for (const std::size_t size : {24ul, 5000ul, 100'000ul, 700'000ul}) {
      auto* block = static_cast<unsigned char*>(hm_heap_calloc(heap, 1, size));
      REQUIRE(block != nullptr);
      std::size_t nonzero = 0;
      for (std::size_t i = 0; i < size; ++i)
        nonzero += block[i] != 0 ? 1 : 0;
      CHECK(nonzero == 0);
      std::memset(block, 0xff, hm_usable_size(block));
    }
    hm_heap_destroy(heap);
  }
}

TEST_CASE("a heap has a capacity, and gets back what is freed") {
  CHECK(hm_heap_create(HM_NEAR, 1000) == nullptr);
  CHECK(errno == EINVAL);
  CHECK(hm_heap_create(HM_TIER_COUNT, 0) == nullptr);
  CHECK(errno == EINVAL);
  constexpr std::size_t capacity = std::size_t{4} << 20;
  hm_heap* heap = hm_heap_create(HM_NEAR, capacity);
  CHECK(stats_of(heap).capacity_bytes == capacity);
  for (const std::size_t size : {64ul, 100'000ul, 1'000'000ul, 64ul}) {
    std::vector<void*> blocks;
    errno = 0;
    while (void* block = hm_heap_malloc(heap, size))
      blocks.push_back(block);
    CHECK(errno == ENOMEM);
    CHECK(blocks.size() * size > capacity * 6 / 10);
    CHECK(stats_of(heap).span_bytes <= capacity);
    for (void* block : blocks)
      hm_free(block);
  }
  CHECK(hm_heap_malloc(heap, capacity + 1) == nullptr);
  void* all = hm_heap_malloc(heap, capacity);
  CHECK(all != nullptr);
  all = hm_realloc(HM_KEEP, all, capacity + 1);
  CHECK(all == nullptr);
  hm_heap_destroy(heap);
}

TEST_CASE("at most 255 heaps exist at a time, and their numbers are used again") {
  std::set<hm_heap*> heaps;
  while (hm_heap* heap = hm_heap_create(HM_NEAR, 0)) {
    CHECK(hm_heap_malloc(heap, 100) != nullptr);
    heaps.insert(heap);
  }
  CHECK(errno == ENOSPC);
  CHECK(heaps.size() <= 255);
  CHECK(heaps.size() > 200); // other cases may have left some
  for (hm_heap* heap : heaps)
    hm_heap_destroy(heap);
  hm_heap* heap = hm_heap_create(HM_NEAR, 0);
  CHECK(stats_of(heap).allocations == 0);
  hm_heap_destroy(heap);
}

TEST_CASE("threads use, create and destroy heaps concurrently") {
  hm_heap* shared = hm_heap_create(HM_NEAR, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([shared, t] {
      for (int round = 0; round < 50; ++round) {
        hm_heap* own = hm_heap_create(HM_NEAR, 0);
        std::vector<void*> blocks;
        for (std::size_t size = 8; size < 300'000; size += size / 2) {
          void* of_own = hm_heap_malloc(own, size);
          std::memset(of_own, t, size);
          blocks.push_back(hm_heap_malloc(shared, size));
          std::memset(blocks.back(), t, size);
        }
        if (round % 8 == 0) hm_trim(HM_NEAR);
        for (void* block : blocks)
          hm_free(block);
        hm_heap_destroy(own);
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  CHECK(stats_of(shared).live_bytes == 0);
  hm_heap_destroy(shared);
}

#if !defined(__SANITIZE_THREAD__)

// Tiers are created in children: a process has at most eight.

TEST_CASE("a child has the heaps of its parent, and changes only its own") {
  CHECK(status_in_child([] {
          const hm_tier tier = hm_tier_create("heaps", "shm:,capacity=256MiB");
          hm_heap* heap = hm_heap_create(tier, 0);
          const std::vector<unsigned char*> blocks = fill(heap);
          const int status = status_in_child([&] {
            if (!is_intact(blocks)) return false;
            std::memset(blocks[20], 0xff, 1);
            if (hm_heap_malloc(heap, 1000) == nullptr) return false;
            hm_heap_destroy(heap);
            return hm_heap_create(tier, 0) != nullptr;
          });
          void* moved = hm_move(blocks[0], HM_NEAR);
          return status == 0 && blocks[20][0] == 20 && hm_heap_of(moved) == nullptr;
        }) == 0);
}

TEST_CASE("a child without the tier of a heap cannot allocate there") {
  CHECK(status_in_child([] {
          const char* specification = "shm:,capacity=64MiB,fork=deny";
          hm_heap* heap = hm_heap_create(hm_tier_create("denied", specification), 0);
          void* block = hm_heap_malloc(heap, 1000);
          return status_in_child([heap, block, specification] {
                   if (hm_heap_malloc(heap, 10) != nullptr || errno != ENODEV) return false;
                   hm_free(block);
                   hm_heap_destroy(heap);
                   return hm_tier_create("denied", specification) >= 0;
                 }) == 0;
        }) == 0);
}

TEST_CASE("a heap that does not exist ends the program") {
  hm_heap* heap = hm_heap_create(HM_NEAR, 0);
  hm_heap_destroy(heap);
  const int status = status_in_child([heap] {
    close(STDERR_FILENO);
    hm_heap_destroy(heap);
    return true;
  });
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
}

#endif

TEST_CASE("statistics are read by name, good sizes are those of blocks") {
  std::uint64_t before = 0;
  std::uint64_t after = 0;
  REQUIRE(hm_ctl("tier.near.live_bytes", &before) == 0);
  void* block = hm_malloc(HM_NEAR, 1'000'000);
  REQUIRE(hm_ctl("tier.near.live_bytes", &after) == 0);
  CHECK(after == before + hm_good_size(1'000'000));
  hm_free(block);
  for (const char* name : {"tier.near.unknown", "live_bytes", "tier.near", ""}) {
    CHECK(hm_ctl(name, &before) == -1);
    CHECK(errno == ENOENT);
  }
  CHECK(hm_ctl("tier.none.live_bytes", &before) == -1);
  CHECK(errno == ENODEV);
  CHECK(hm_ctl(nullptr, &before) == -1);
  CHECK(errno == EINVAL);
  for (const std::size_t size : {0ul, 1ul, 129ul, 40'000ul, 524'289ul}) {
    void* of_size = hm_malloc(HM_NEAR, size);
    CHECK(hm_good_size(size) == hm_usable_size(of_size));
    hm_free(of_size);
  }
  CHECK(hm_good_size(SIZE_MAX) == SIZE_MAX);
}
