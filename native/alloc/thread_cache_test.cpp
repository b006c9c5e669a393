// Caches of threads: blocks that other tiers spill, and what follows the end of a thread.
#include <nearfar/hmalloc.h>

#include <cstring>
#include <doctest/doctest.h>
#include <string>
#include <thread>
#include <vector>

#include "alloc/metadata.hpp"
#include "alloc/thread_cache.hpp"
#include "test_support.hpp"

using nearfar::test::status_in_child;

namespace {

hm_tier_stats stats_of(hm_tier tier) {
  hm_tier_stats stats{};
  hm_stats(tier, &stats);
  return stats;
}

void free_all(const std::vector<void*>& blocks) {
  for (void* block : blocks)
    hm_free(block);
}

/// A thread that allocates blocks of all cached classes and frees them, but one, and ends.
void* end_a_thread_with_blocks(hm_tier tier) {
  void* left = nullptr;
  std::thread([&] {
    std::vector<void*> blocks;
    for (std::size_t bytes = 16; bytes <= 32768; bytes += bytes / 8)
      for (int i = 0; i < 20; ++i)
        blocks.push_back(hm_malloc(tier, bytes));
    left = blocks.back();
    blocks.pop_back();
    free_all(blocks);
  }).join();
  return left;
}

} // namespace

TEST_CASE("threads that start after others have ended need no more metadata, and counters add up") {
  for (int i = 0; i < 20; ++i) // stacks grow when they are refilled
    hm_free(end_a_thread_with_blocks(HM_NEAR));
  const std::size_t metadata = nearfar::alloc::metadata_bytes();
  const hm_tier_stats before = stats_of(HM_NEAR);
  std::uint64_t of_one = 0;
  for (std::uint64_t threads = 1; threads <= 20; ++threads) {
    hm_free(end_a_thread_with_blocks(HM_NEAR));
    const hm_tier_stats now = stats_of(HM_NEAR);
    const std::uint64_t allocations = now.allocations - before.allocations;
    if (threads == 1) of_one = allocations;
    CHECK(allocations == threads * of_one);
    CHECK(allocations == now.frees - before.frees);
    CHECK(now.live_bytes == before.live_bytes);
  }
  CHECK(of_one > 1000);
  CHECK(nearfar::alloc::metadata_bytes() < metadata + 32768); // slabs, not 20 caches
}

TEST_CASE("the stack of a class grows with its use, not with the number of refills") {
  nearfar::alloc::BlockStack stack;
  stack.grow(0);
  CHECK(stack.capacity() == 16);
  stack.grow(0);
  CHECK(stack.capacity() == 16);
  std::byte block{};
  nearfar::alloc::AtomicBlockState state{};
  for (int i = 0; i < 8 * 16; ++i) {
    CHECK(stack.push({&block, &state}));
    CHECK(stack.pop() == &block);
  }
  stack.grow(0);
  CHECK(stack.capacity() == 32);
}

TEST_CASE(
    "a thread that frees blocks of another one returns more of them at a time, the more it frees") {
  constexpr std::size_t bytes = 64, count = 10'000;
  std::vector<void*> blocks(count);
  for (void*& block : blocks)
    block = hm_malloc(HM_NEAR, bytes);
  std::uint32_t capacity = 0;
  std::thread([&] {
    free_all(blocks);
    const auto& stacks = nearfar::alloc::this_thread_cache->tiers[HM_NEAR]->stacks;
    capacity = stacks[nearfar::alloc::class_of(bytes)].capacity();
  }).join();
  CHECK(capacity == 1024);
}

#ifndef __SANITIZE_THREAD__ // under which a child cannot start threads

namespace {

std::vector<void*> allocate(hm_tier tier, std::size_t count, std::size_t bytes) {
  std::vector<void*> blocks(count);
  for (void*& block : blocks)
    block = hm_malloc(tier, bytes);
  return blocks;
}

} // namespace

// Tiers are created in children: a process has at most eight.

TEST_CASE("refilling a thread's stack that another tier spilled into loses no block") {
  CHECK(status_in_child([] {
          const hm_tier sink = hm_tier_create("sink", "dram,capacity=8MiB");
          const hm_tier full = hm_tier_create("full", "dram,capacity=1MiB,overflow=spill:sink");
          const std::vector<void*> blocks = allocate(full, 5000, 1024);
          std::size_t spilled = 0;
          for (void* block : blocks) {
            if (block == nullptr) return false;
            if (hm_tier_of(block) == sink) ++spilled;
          }
          const hm_tier_stats stats = stats_of(sink);
          return spilled > 3000 && stats.live_bytes == spilled * 1024 &&
                 stats.cached_bytes < 1 << 20 && stats.span_bytes < 6 << 20;
        }) == 0);
}

TEST_CASE("a full tier uses the blocks in caches of threads that have ended") {
  CHECK(status_in_child([] {
          const hm_tier tier = hm_tier_create("tight", "dram,capacity=8MiB");
          hm_free(end_a_thread_with_blocks(tier));
          void* large = hm_malloc(tier, (8 << 20) - (64 << 10));
          if (large == nullptr) return false;
          hm_free(large);
          return stats_of(tier).live_bytes == 0;
        }) == 0);
}

TEST_CASE("a child and its threads use the caches of threads that have ended") {
  for (const char* specification : {"dram", "shm:,capacity=64MiB", "shm:,capacity=64MiB,fork=copy"})
    CHECK(status_in_child([specification] {
            const hm_tier tier = hm_tier_create("ended", specification);
            void* left = end_a_thread_with_blocks(tier);
            const hm_tier_stats before = stats_of(tier);
            return status_in_child([&] {
                     hm_free(end_a_thread_with_blocks(tier));
                     hm_free(left);
                     return stats_of(tier).live_bytes == 0 &&
                            stats_of(tier).allocations > before.allocations;
                   }) == 0 &&
                   stats_of(tier).live_bytes == before.live_bytes;
          }) == 0);
}

TEST_CASE("a thread of a child does not allocate blocks of a tier that the child does not have") {
  CHECK(status_in_child([] {
          const char* specification = "shm:,capacity=64MiB,fork=deny";
          const hm_tier tier = hm_tier_create("denied", specification);
          std::vector<void*> inherited = allocate(tier, 100, 4096);
          inherited.push_back(
              end_a_thread_with_blocks(tier)); // its cache is that of the next thread
          return status_in_child([&] {
                   bool intact = false;
                   std::thread([&] {
                     hm_free(hm_malloc(HM_NEAR, 1)); // acquires the cache
                     free_all(inherited);            // has no effect
                     if (hm_tier_create("denied", specification) != tier) return;
                     const std::vector<void*> blocks = allocate(tier, 1000, 4096);
                     for (void* block : blocks)
                       std::memset(block, 1, 4096); // SIGSEGV in the memory of the removed tier
                     free_all(blocks);
                     hm_trim(tier);
                     intact = stats_of(tier).live_bytes == 0;
                   }).join();
                   return intact;
                 }) == 0;
        }) == 0);
}

#endif
