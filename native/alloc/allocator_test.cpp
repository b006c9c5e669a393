// Allocators next to that of the process.
#include "alloc/allocator.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <doctest/doctest.h>
#include <memory>
#include <nearfar/hmalloc.h>
#include <string>
#include <thread>
#include <vector>

#include "alloc/metadata.hpp"
#include "alloc/stats.hpp"
#include "test_support.hpp"

using namespace nearfar;
using namespace nearfar::alloc;

namespace {

/// An allocator for one scope, with a window of 1 GiB per tier.
class ScopedAllocator {
public:
  ScopedAllocator() {
    constexpr unsigned shift = 30;
    REQUIRE(allocator_->window.open_reserved(shift));
    REQUIRE(allocator_->open());
  }
  ~ScopedAllocator() { allocator_->close(); }
  ScopedAllocator(const ScopedAllocator&) = delete;
  ScopedAllocator& operator=(const ScopedAllocator&) = delete;
  Allocator& operator*() const { return *allocator_; }
  Allocator* operator->() const { return allocator_.get(); }

private:
  std::unique_ptr<Allocator> allocator_ = std::make_unique<Allocator>();
};

/// Allocates blocks of all sizes up to 1 MiB, and writes `fill` to each.
std::vector<unsigned char*> fill_tier(Allocator& allocator, unsigned tier, unsigned char fill) {
  std::vector<unsigned char*> blocks;
  for (std::size_t size = 1; size <= std::size_t{1} << 20; size += size / 8 + 1) {
    auto* block = static_cast<unsigned char*>(allocator.allocate(tier, size));
    REQUIRE(block != nullptr);
    blocks.push_back(static_cast<unsigned char*>(std::memset(block, fill, size)));
  }
  return blocks;
}

hm_tier_stats stats_of(Allocator& allocator, unsigned tier) {
  hm_tier_stats stats;
  read_stats(allocator, tier, stats);
  return stats;
}

} // namespace

TEST_CASE("live bytes are never negative while another thread allocates and frees") {
  ScopedAllocator allocator;
  std::atomic<bool> done{false};
  std::thread thread([&] {
    for (int i = 0; i < 500'000; ++i)
      allocator->release(allocator->allocate(0, 1000));
    done = true;
  });
  std::uint64_t most = 0;
  while (!done)
    most = std::max(most, std::uint64_t{stats_of(*allocator, 0).live_bytes});
  thread.join();
  CHECK(most < (std::uint64_t{1} << 40)); // a negative number is larger
}

TEST_CASE("two allocators have separate tiers, blocks, settings and statistics") {
  ScopedAllocator first;
  ScopedAllocator second;
  second->settings.guard = true;
  Result<int> small = first->create_tier("far", "dram,capacity=8MiB");
  Result<int> large = second->create_tier("far", "dram,capacity=64MiB");
  REQUIRE(small);
  REQUIRE(large);
  CHECK(*small == *large);
  const auto tier = static_cast<unsigned>(*small);
  std::vector<unsigned char*> ones = fill_tier(*first, 0, 1);
  std::vector<unsigned char*> twos = fill_tier(*second, 0, 2);
  for (unsigned char* block : ones) {
    CHECK(block[0] == 1);
    CHECK(first->window.contains(block));
    CHECK_FALSE(second->window.contains(block));
    CHECK(hm_tier_of(block) == HM_FOREIGN);
  }
  CHECK(stats_of(*first, 0).allocations == ones.size());
  CHECK(stats_of(*first, tier).allocations == 0);
  for (unsigned char* block : ones)
    first->release(block);
  CHECK(stats_of(*first, 0).live_bytes == 0);
  CHECK(stats_of(*second, 0).live_bytes > 0);
  CHECK(first->allocate(tier, std::size_t{16} << 20) == nullptr);
  CHECK(stats_of(*first, tier).failed == 1);
  void* fits = second->allocate(tier, std::size_t{16} << 20);
  CHECK(fits != nullptr);
  CHECK(stats_of(*second, tier).failed == 0);
  for (unsigned char* block : twos)
    CHECK(block[0] == 2);
}

TEST_CASE("threads use two allocators concurrently") {
  ScopedAllocator first;
  ScopedAllocator second;
  const auto churn = [](Allocator& allocator, unsigned char fill) {
    for (int round = 0; round < 5; ++round)
      for (unsigned char* block : fill_tier(allocator, 0, fill))
        allocator.release(block);
    allocator.trim(0);
  };
  std::thread other(churn, std::ref(*first), 3);
  churn(*second, 4);
  churn(*first, 5);
  other.join();
  CHECK(stats_of(*first, 0).live_bytes == 0);
  CHECK(stats_of(*first, 0).frees == 2 * stats_of(*second, 0).frees);
}

TEST_CASE("a closed allocator returns its metadata and its address space, and opens again") {
  Allocator allocator;
  const std::size_t before = metadata_bytes();
  for (int round = 0; round < 3; ++round) {
    REQUIRE(allocator.window.open_reserved(30));
    REQUIRE(allocator.open());
    fill_tier(allocator, 0, 6); // not freed
    CHECK(metadata_bytes() > before);
    allocator.close();
    CHECK(metadata_bytes() == before);
    CHECK_FALSE(allocator.tiers[0].ready());
  }
}

TEST_CASE("the last overflow= of a specification holds") {
  ScopedAllocator scoped;
  constexpr std::size_t more = std::size_t{8} << 20;
  Result<int> fails = scoped->create_tier("fails", "dram,capacity=4MiB,overflow=spill:near,"
                                                   "overflow=fail");
  Result<int> spills = scoped->create_tier("spills", "dram,capacity=4MiB,overflow=fail,"
                                                     "overflow=spill:near");
  REQUIRE(fails);
  REQUIRE(spills);
  CHECK(scoped->allocate(static_cast<unsigned>(*fails), more) == nullptr);
  CHECK(scoped->allocate(static_cast<unsigned>(*spills), more) != nullptr);
}

TEST_CASE("a tier that cannot be opened leaves its slot as it was") {
  const test::Folder folder;
  ScopedAllocator scoped;
  const std::string file = "file:" + folder.path() + ",capacity=900TiB";
  for (unsigned round = 0; round < 2 * tier_count; ++round)
    CHECK_FALSE(scoped->create_tier("huge", file.c_str()));
  CHECK(scoped->find_tier("huge") == -1);
  Result<int> made =
      scoped->create_tier("huge", ("file:" + folder.path() + ",capacity=8MiB").c_str());
  REQUIRE(made);
  void* block = scoped->allocate(static_cast<unsigned>(*made), 100);
  REQUIRE(block != nullptr);
  CHECK(scoped->window.tier_of(block) == static_cast<unsigned>(*made));
}
