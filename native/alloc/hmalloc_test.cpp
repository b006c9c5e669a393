#include <nearfar/hmalloc.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <iterator>
#include <string>
#include <unistd.h>

#include "test_support.hpp"

namespace {
/// Shared by several test cases, because a process has at most eight tiers.
int small_far() {
  static const int tier = hm_tier_create("far", "dram,capacity=4MiB");
  return tier;
}
} // namespace

TEST_CASE("blocks are aligned, large enough, and in their tier") {
  for (std::size_t size : {0ul, 1ul, 16ul, 17ul, 500ul, 4096ul, 40'000ul, 600'000ul, 5'000'000ul}) {
    void* block = hm_malloc(HM_NEAR, size);
    REQUIRE(block != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(block) % 16 == 0);
    CHECK(hm_usable_size(block) >= size);
    CHECK(hm_tier_of(block) == HM_NEAR);
    std::memset(block, 0xa5, hm_usable_size(block));
    hm_free(block);
  }
  CHECK(hm_tier_of(&errno) == HM_FOREIGN);
  CHECK(hm_usable_size(nullptr) == 0);
  hm_free(nullptr);
}

TEST_CASE("hm_calloc returns zeroed memory, also if it was used before") {
  for (std::size_t size : {24ul, 3000ul, 50'000ul, 700'000ul}) {
    void* dirty = hm_malloc(HM_NEAR, size);
    std::memset(dirty, 0xff, size);
    hm_free(dirty);
    auto* block = static_cast<unsigned char*>(hm_calloc(HM_NEAR, 1, size));
    REQUIRE(block != nullptr);
    std::size_t nonzero = 0;
    for (std::size_t i = 0; i < size; ++i)
      nonzero += block[i] != 0 ? 1 : 0;
    CHECK(nonzero == 0);
    hm_free(block);
  }
}

TEST_CASE("sizes that overflow fail with ENOMEM") {
  volatile std::size_t huge = SIZE_MAX; // hidden from the compiler, which would warn
  errno = 0;
  CHECK(hm_calloc(HM_NEAR, huge, 2) == nullptr);
  CHECK(errno == ENOMEM);
  CHECK(std::string(hm_error()).find("overflow") != std::string::npos);
  errno = 0;
  CHECK(hm_malloc(HM_NEAR, huge) == nullptr);
  CHECK(errno == ENOMEM);
  errno = 0;
  CHECK(hm_memalign(HM_NEAR, 64, huge - 8) == nullptr);
  CHECK(errno == ENOMEM);
}

TEST_CASE("invalid and missing tiers are errors") {
  errno = 0;
  CHECK(hm_malloc(99, 16) == nullptr);
  CHECK(errno == EINVAL);
  errno = 0;
  CHECK(hm_malloc(-1, 16) == nullptr);
  CHECK(errno == EINVAL);
  errno = 0;
  CHECK(hm_malloc(7, 16) == nullptr);
  CHECK(errno == ENODEV);
  CHECK(hm_tier_create("bad name", "dram") == -1);
  CHECK(errno == EINVAL);
  CHECK(hm_tier_create("near", "dram") == -1);
  CHECK(errno == EEXIST);
  CHECK(hm_tier_create("odd", "dram,capacity=lots") == -1);
  CHECK(std::string(hm_error()).find("capacity") != std::string::npos);
  CHECK(hm_tier_find("odd") == -1);
}

TEST_CASE("a tier without name or specification is an error") {
  for (const auto& [name, specification] : {std::pair<const char*, const char*>{nullptr, "dram"},
                                            {"nameless", nullptr},
                                            {nullptr, nullptr}}) {
    errno = 0;
    CHECK(hm_tier_create(name, specification) == -1);
    CHECK(errno == EINVAL);
    CHECK(std::string(hm_error()).find("NULL") != std::string::npos);
  }
  CHECK(hm_tier_find("nameless") == -1);
  errno = 0;
  CHECK(hm_tier_find(nullptr) == -1);
  CHECK(errno == ENODEV);
}

TEST_CASE("blocks can be aligned to up to 4 GiB") {
  for (std::size_t alignment = 16; alignment <= std::size_t{1} << 32; alignment *= 2) {
    void* block = hm_memalign(HM_NEAR, alignment, 100);
    REQUIRE(block != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
    hm_free(block);
  }
  errno = 0;
  CHECK(hm_memalign(HM_NEAR, 24, 100) == nullptr);
  CHECK(errno == EINVAL);
  errno = 0;
  CHECK(hm_memalign(HM_NEAR, std::size_t{1} << 47, 100) == nullptr);
  CHECK(errno == ENOMEM);
}

TEST_CASE("an aligned block can use memory of freed small blocks") {
  const int tier = small_far();
  REQUIRE(tier >= 0);
  std::vector<void*> blocks;
  while (void* block = hm_malloc(tier, 4096))
    blocks.push_back(block);
  for (void* block : blocks)
    hm_free(block);
  void* aligned = hm_memalign(tier, std::size_t{128} << 10, std::size_t{1} << 20);
  CHECK(aligned != nullptr);
  hm_free(aligned);
}

TEST_CASE("an aligned block fits into a free run of exactly its size") {
  const int tier = small_far();
  REQUIRE(tier >= 0);
  constexpr std::size_t alignment = std::size_t{1} << 20;
  std::vector<void*> blocks; // all of the tier
  while (void* block = hm_memalign(tier, alignment, alignment))
    blocks.push_back(block);
  REQUIRE(blocks.size() >= 3);
  void* gap = blocks[1];
  hm_free(gap);
  CHECK(hm_memalign(tier, alignment, alignment) == gap);
  for (void* block : blocks)
    hm_free(block);
}

TEST_CASE("hm_realloc keeps contents and tier, hm_move changes the tier") {
  const nearfar::test::Folder folder;
  const int tier = hm_tier_create("file", ("file:" + folder.path() + ",capacity=64MiB").c_str());
  REQUIRE(tier >= 2);
  CHECK(std::string(hm_tier_name(tier)) == "file");
  CHECK(hm_tier_find("file") == tier);
  auto* block = static_cast<char*>(hm_malloc(tier, 100));
  REQUIRE(block != nullptr);
  CHECK(hm_tier_of(block) == tier);
  std::strcpy(block, "kept");
  for (std::size_t size : {1000ul, 100'000ul, 2'000'000ul, 3'000'000ul, 50ul}) {
    block = static_cast<char*>(hm_realloc(HM_KEEP, block, size));
    REQUIRE(block != nullptr);
    CHECK(std::string(block) == "kept");
    CHECK(hm_tier_of(block) == tier);
  }
  block = static_cast<char*>(hm_move(block, HM_NEAR));
  CHECK(hm_tier_of(block) == HM_NEAR);
  CHECK(std::string(block) == "kept");
  CHECK(hm_move(block, HM_NEAR) == block);
  hm_free(block);
}

TEST_CASE("a full tier fails or spills, as specified") {
  const int full = small_far();
  const int spilling = hm_tier_create("spilling", "dram,capacity=4MiB,overflow=spill:near");
  REQUIRE(full >= 0);
  REQUIRE(spilling >= 0);
  errno = 0;
  CHECK(hm_malloc(full, std::size_t{8} << 20) == nullptr);
  CHECK(errno == ENOMEM);
  void* near = hm_malloc(spilling, std::size_t{8} << 20);
  REQUIRE(near != nullptr);
  CHECK(hm_tier_of(near) == HM_NEAR);
  hm_tier_stats stats;
  REQUIRE(hm_stats(spilling, &stats) == 0);
  CHECK(stats.spilled == 1);
  REQUIRE(hm_stats(full, &stats) == 0);
  CHECK(stats.failed >= 1);
  CHECK(stats.capacity_bytes == std::uint64_t{4} << 20);
  hm_free(near);
}

TEST_CASE("a tier can be filled to its capacity repeatedly") {
  const int tier = small_far();
  REQUIRE(tier >= 0);
  for (int round = 0; round < 3; ++round)
    for (std::size_t size : {64ul, 5000ul, 100'000ul, 1'000'000ul}) {
      std::vector<void*> blocks;
      while (void* block = hm_malloc(tier, size))
        blocks.push_back(block);
      CHECK(static_cast<double>(blocks.size() * size) > 0.7 * 4 * 1048576);
      for (void* block : blocks)
        hm_free(block);
    }
}

TEST_CASE("statistics count allocations, frees and bytes") {
  hm_tier_stats before;
  hm_tier_stats after;
  REQUIRE(hm_stats(HM_NEAR, &before) == 0);
  void* small = hm_malloc(HM_NEAR, 100);
  void* medium = hm_malloc(HM_NEAR, 100'000);
  void* large = hm_malloc(HM_NEAR, 1'000'000);
  REQUIRE(hm_stats(HM_NEAR, &after) == 0);
  const std::uint64_t usable =
      hm_usable_size(small) + hm_usable_size(medium) + hm_usable_size(large);
  CHECK(after.allocations - before.allocations == 3);
  CHECK(after.allocated_bytes - before.allocated_bytes == usable);
  CHECK(after.live_bytes - before.live_bytes == usable);
  for (void* block : {small, medium, large})
    hm_free(block);
  REQUIRE(hm_stats(HM_NEAR, &after) == 0);
  CHECK(after.frees - before.frees == 3);
  CHECK(after.live_bytes == before.live_bytes);
}

TEST_CASE("statistics fill no more than the struct of the header that a program was built with") {
  constexpr std::uint64_t untouched = 0xABABABABABABABAB;
  constexpr std::size_t fields_of_1_0 = 11;
  std::uint64_t fields[fields_of_1_0 + 8];
  auto* stats = reinterpret_cast<hm_tier_stats*>(fields);
  const auto filled = [&](auto&& call) {
    std::fill(std::begin(fields), std::end(fields), untouched);
    call();
    return static_cast<std::size_t>(std::find(std::begin(fields), std::end(fields), untouched) -
                                    std::begin(fields));
  };
  hm_heap* heap = hm_heap_create(HM_NEAR, 0);
  REQUIRE(heap != nullptr);
  CHECK(filled([&] { REQUIRE((hm_stats)(HM_NEAR, stats) == 0); }) == fields_of_1_0);
  CHECK(filled([&] { (hm_heap_stats)(heap, stats); }) == fields_of_1_0);
  CHECK(filled([&] { REQUIRE(hm_stats_sized(HM_NEAR, stats, 16) == 0); }) == 2);
  CHECK(filled([&] { hm_heap_stats_sized(heap, stats, 16); }) == 2);
  // A newer header: what this library does not know is 0.
  CHECK(filled([&] { hm_heap_stats_sized(heap, stats, sizeof fields); }) == std::size(fields));
  CHECK(fields[std::size(fields) - 1] == 0);
  hm_heap_destroy(heap);
}

TEST_CASE("writing statistics to an invalid or full descriptor is an error") {
  errno = 0;
  CHECK(hm_stats_write(-1) == -1);
  CHECK(errno == EBADF);
  CHECK(std::string(hm_error()).find("cannot write statistics to descriptor -1") !=
        std::string::npos);
  const int full = open("/dev/full", O_WRONLY);
  REQUIRE(full >= 0);
  CHECK(hm_stats_write(full) == -1);
  CHECK(errno == ENOSPC);
  close(full);
}

TEST_CASE("hm_residency counts present and absent pages") {
  constexpr std::size_t pages = 1000;
  auto* block = static_cast<char*>(hm_malloc(HM_NEAR, pages * 4096));
  REQUIRE(hm_trim(HM_NEAR) != SIZE_MAX);
  hm_pages found;
  for (std::size_t i = 0; i < pages / 2; ++i)
    block[i * 4096] = 1;
  REQUIRE(hm_residency(block, pages * 4096, &found) == 0);
  std::size_t present = 0;
  for (std::size_t count : found.on_node)
    present += count;
  CHECK(found.pages == pages);
  CHECK(present + found.absent == pages);
  CHECK(present >= pages / 2);
  hm_free(block);
  CHECK(hm_residency(block, 0, &found) == -1);
}
