// The headers for C++ and for programs that use memkind.
#include <nearfar/hmalloc.hpp>
#include <nearfar/hmalloc_memkind.h>

#include <doctest/doctest.h>
#include <list>
#include <map>
#include <memory_resource>
#include <string>
#include <vector>

#include "test_support.hpp"

namespace {
int shared_tier() {
  const int made = hm_tier_find("shared"); // created by another test case
  return made >= 0 ? made : hm_tier_create("shared", "shm:,capacity=512MiB");
}
} // namespace

TEST_CASE("containers allocate in the tier of their allocator") {
  const int tier = shared_tier();
  REQUIRE(tier >= 0);
  std::vector<int, nearfar::TierAllocator<int>> numbers{nearfar::TierAllocator<int>(tier)};
  for (int i = 0; i < 10'000; ++i)
    numbers.push_back(i);
  CHECK(hm_tier_of(numbers.data()) == tier);
  CHECK(numbers[9'999] == 9'999);
  std::list<long, nearfar::TierAllocator<long>> list{nearfar::TierAllocator<long>(tier)};
  list.push_back(5); // rebound to the list's nodes
  CHECK(hm_tier_of(&list.front()) == tier);
  CHECK(nearfar::TierAllocator<int>(tier) == nearfar::TierAllocator<long>(tier));
  CHECK(nearfar::TierAllocator<int>(tier) != nearfar::TierAllocator<int>(HM_NEAR));
}

TEST_CASE("a memory resource allocates in its tier, and throws when the tier is full") {
  const int tier = shared_tier();
  nearfar::TierResource resource(tier);
  std::pmr::vector<double> values(1000, 1.5, &resource);
  CHECK(hm_tier_of(values.data()) == tier);
  CHECK_THROWS_AS(values.resize(std::size_t{1} << 30), std::bad_alloc);
  CHECK(values.size() == 1000);
  CHECK(resource == nearfar::TierResource(tier));
  CHECK(resource != *std::pmr::new_delete_resource());
}

TEST_CASE("the functions of hmalloc_memkind.h behave as those of memkind") {
  const nearfar::test::Folder folder;
  memkind_t kind = nullptr;
  REQUIRE(memkind_create_pmem(folder.path().c_str(), std::size_t{32} << 20, &kind) ==
          MEMKIND_SUCCESS);
  CHECK(memkind_check_available(kind) == MEMKIND_SUCCESS);
  void* block = memkind_malloc(kind, 1000);
  REQUIRE(block != nullptr);
  CHECK(memkind_detect_kind(block) == kind);
  CHECK(memkind_malloc_usable_size(kind, block) >= 1000);
  block = memkind_realloc(nullptr, block, 5000);
  CHECK(memkind_detect_kind(block) == kind);
  memkind_free(nullptr, block);
  CHECK(memkind_malloc(kind, 0) == nullptr);
  CHECK(memkind_malloc(kind, std::size_t{64} << 20) == nullptr);
  void* aligned = nullptr;
  CHECK(memkind_posix_memalign(MEMKIND_DEFAULT, &aligned, 4096, 10) == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(aligned) % 4096 == 0);
  memkind_free(MEMKIND_DEFAULT, aligned);
  CHECK(memkind_posix_memalign(MEMKIND_DEFAULT, &aligned, 3, 10) == EINVAL);
  auto* zeros = static_cast<char*>(memkind_calloc(kind, 10, 10));
  CHECK(zeros[99] == 0);
  memkind_free(kind, zeros);
  CHECK(memkind_create_pmem("/no/such/folder", 0, &kind) == MEMKIND_ERROR_INVALID);
}
