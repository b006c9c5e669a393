#include "os/pages.hpp"

#include <cinttypes>
#include <cstdio>
#include <doctest/doctest.h>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "os/file.hpp"
#include "test_support.hpp"

using namespace nearfar;
using os::PageSize;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

/// Bytes of the kernel's own area that starts where the range does; 0 if none does.
std::size_t kernel_area(const os::MappedRange& range) {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    std::uintptr_t low = 0;
    std::uintptr_t high = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &low, &high) == 2 &&
        low == reinterpret_cast<std::uintptr_t>(range.data()))
      return high - low;
  }
  return 0;
}

} // namespace

TEST_CASE("neighboring ranges are never merged by the kernel") {
  std::vector<os::MappedRange> ranges;
  for (int i = 0; i < 8; ++i) {
    Result<os::MappedRange> range = os::map_range(16 * 4096, PageSize::system, -1, false);
    REQUIRE(bool(range));
    ranges.push_back(std::move(*range));
  }
  for (const os::MappedRange& range : ranges)
    CHECK(kernel_area(range) == range.size());
}

TEST_CASE("ranges of small pages that are mapped again have other addresses") {
  std::set<std::uintptr_t> addresses;
  for (int i = 0; i < 32; ++i) {
    Result<os::MappedRange> range = os::map_range(mib, PageSize::small_4k, -1, false);
    REQUIRE(bool(range));
    addresses.insert(reinterpret_cast<std::uintptr_t>(range->data()) % mib);
  }
  CHECK(addresses.size() > 8);
}

TEST_CASE("residency speaks of one range alone") {
  Result<os::MappedRange> touched = os::map_range(mib, PageSize::small_4k, -1, false);
  Result<os::MappedRange> untouched = os::map_range(mib, PageSize::small_4k, -1, false);
  REQUIRE(bool(touched));
  REQUIRE(bool(untouched));
  os::prefault(*touched);
  Result<os::Residency> of_touched = os::residency(*touched);
  Result<os::Residency> of_untouched = os::residency(*untouched);
  REQUIRE(bool(of_touched));
  REQUIRE(bool(of_untouched));
  CHECK(of_touched->resident_bytes == mib);
  CHECK(of_touched->kernel_page_bytes == 4096);
  CHECK(of_touched->huge_bytes == 0);
  CHECK(of_untouched->resident_bytes == 0);
}

TEST_CASE("sizes are rounded up to the page, and every byte can be used") {
  Result<os::MappedRange> range = os::map_range(5000, PageSize::system, -1, false);
  REQUIRE(bool(range));
  CHECK(range->size() == 8192);
  range->data()[0] = std::byte{1};
  range->data()[8191] = std::byte{2};
  CHECK(range->data()[4096] == std::byte{0});
}

TEST_CASE("a range that is moved unmaps once, at its new owner's end") {
  std::size_t area = 0;
  const std::byte* at = nullptr;
  {
    os::MappedRange kept;
    {
      Result<os::MappedRange> range = os::map_range(mib, PageSize::system, -1, false);
      REQUIRE(bool(range));
      kept = std::move(*range);
    }
    at = kept.data();
    kept.data()[0] = std::byte{1};
    area = kernel_area(kept);
  }
  CHECK(area == mib);
  Result<os::MappedRange> unrelated = os::map_range(4096, PageSize::system, -1, false);
  REQUIRE(bool(unrelated));
  std::ifstream maps("/proc/self/maps");
  std::string line;
  char start[24];
  std::snprintf(start, sizeof start, "%" PRIxPTR "-", reinterpret_cast<std::uintptr_t>(at));
  if (unrelated->data() != at)
    while (std::getline(maps, line))
      CHECK(line.rfind(start, 0) != 0);
}

TEST_CASE("a file is mapped shared: a store is seen through the file") {
  const test::Folder folder;
  Result<os::File> file = os::create_unnamed(folder.path().c_str());
  REQUIRE(bool(file));
  REQUIRE(bool(os::reserve_space(*file, mib)));
  Result<os::MappedRange> one = os::map_range(mib, PageSize::system, file->fd(), false);
  Result<os::MappedRange> two = os::map_range(mib, PageSize::system, file->fd(), false);
  REQUIRE(bool(one));
  REQUIRE(bool(two));
  one->data()[12345] = std::byte{42};
  CHECK(two->data()[12345] == std::byte{42});
  CHECK(bool(os::sync_range(one->data(), one->size())));
}

TEST_CASE("MAP_SYNC on a file system that is not DAX is refused with a next step") {
  const test::Folder folder;
  Result<os::File> file = os::create_unnamed(folder.path().c_str());
  REQUIRE(bool(file));
  REQUIRE(bool(os::reserve_space(*file, mib)));
  if (os::is_dax(*file)) {
    MESSAGE("skipped: the temporary folder lies on DAX");
    return;
  }
  Result<os::MappedRange> range = os::map_range(mib, PageSize::system, file->fd(), true);
  REQUIRE(!range);
  CHECK(range.error().code == Errc::unsupported);
  CHECK(std::string(range.error().next) != "");
}

TEST_CASE("what does not fit into the address space is refused") {
  Result<os::MappedRange> range = os::map_range(std::size_t{1} << 60, PageSize::system, -1, false);
  REQUIRE(!range);
  CHECK(range.error().code == Errc::no_space);
  CHECK(std::string(range.error().next) != "");
}

TEST_CASE("1 GiB pages beyond any that are reserved are refused, and what to do is said") {
  Result<os::MappedRange> range = os::map_range(std::size_t{1} << 40, PageSize::huge_1g, -1, false);
  REQUIRE(!range);
  CHECK(range.error().code == Errc::unsupported);
  CHECK(std::string(range.error().next).find("hugepages=") != std::string::npos);
}

TEST_CASE("a node that does not exist is refused") {
  Result<os::MappedRange> range = os::map_range(mib, PageSize::system, -1, false);
  REQUIRE(bool(range));
  CHECK(!os::bind_to_node(*range, 1000));
}

TEST_CASE("available memory is more than nothing and less than a petabyte") {
  CHECK(os::available_memory_bytes() > mib);
  CHECK(os::available_memory_bytes() < std::size_t{1} << 50);
}

TEST_CASE("page sizes have the names of the grammar") {
  CHECK(std::string(os::page_size_name(PageSize::system)) == "system");
  CHECK(std::string(os::page_size_name(PageSize::small_4k)) == "4k");
  CHECK(std::string(os::page_size_name(PageSize::transparent_huge)) == "thp");
  CHECK(std::string(os::page_size_name(PageSize::huge_2m)) == "2m");
  CHECK(std::string(os::page_size_name(PageSize::huge_1g)) == "1g");
}
