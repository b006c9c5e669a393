#include "alloclog/mappings.hpp"

#include <cstddef>
#include <doctest/doctest.h>
#include <map>
#include <unistd.h>

#include "base/random.hpp"

using namespace nearfar;
using namespace nearfar::alloclog;

namespace {

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t base = 0x7000'0000'0000;

/// A log's file that events are written into, as a program does.
class Written {
public:
  Written() : file(std::move(*SlotFile::create(1))) {}

  void add(std::uint64_t address, std::uint64_t bytes, std::uint64_t source) {
    write({++count_, address, bytes, source});
  }
  void write(const MappingEvent& event) {
    const auto at = mappings_offset + event.number % mapping_events * sizeof event;
    REQUIRE(pwrite(file.fd(), &event, sizeof event, static_cast<off_t>(at)) == sizeof event);
    set_count(count_);
  }
  void set_count(std::uint64_t count) {
    REQUIRE(pwrite(file.fd(), &count, sizeof count, offsetof(SlotHeader, mapping_count)) ==
            sizeof count);
  }

  SlotFile file;

private:
  std::uint64_t count_ = 0;
};

} // namespace

TEST_CASE("after any events each page has the site that a page by page account has") {
  constexpr std::uint64_t pages = 64;
  Random random(3);
  Written written;
  Mappings mappings;
  std::uint64_t owner[pages] = {};
  for (int step = 0; step < 3000; ++step) {
    const std::uint64_t first = random.next() % pages;
    const std::uint64_t count = 1 + random.next() % (pages - first);
    const std::uint64_t site = random.next() % 5; // 0: unmapped
    written.add(base + first * page, count * page, site);
    for (std::uint64_t i = first; i < first + count; ++i)
      owner[i] = site;
    if (step % 7 != 0) continue;
    mappings.follow(written.file, 1);
    std::map<std::uint64_t, std::uint64_t> live;
    for (std::uint64_t i = 0; i < pages; ++i) {
      const auto found = mappings.find(base + i * page + random.next() % page);
      CHECK(found.has_value() == (owner[i] != 0));
      if (found) CHECK(found->site.number == owner[i]);
      live[owner[i]] += page;
    }
    for (std::uint16_t each = 1; each < 5; ++each)
      if (const auto* totals = mappings.totals(each)) CHECK(totals->live_bytes == live[each]);
  }
}

TEST_CASE("the parts of a mapping belong to the whole that was mapped") {
  Written written;
  written.add(base, 8 * page, 1);
  written.add(base + 2 * page, page, unmapped);
  Mappings mappings;
  mappings.follow(written.file, 1);
  const auto found = mappings.find(base + 5 * page);
  REQUIRE(found);
  CHECK(found->begin == base);
  CHECK(found->bytes == 8 * page);
}

TEST_CASE("what was mapped last at an address is known after it was unmapped") {
  Written written;
  written.add(base, 8 * page, 1);
  written.add(base + 4 * page, 2 * page, 2);
  written.add(base + 2 * page, 4 * page, unmapped);
  Mappings mappings;
  mappings.follow(written.file, 1);
  CHECK_FALSE(mappings.find(base + 3 * page));
  CHECK(mappings.find_unmapped(base + 3 * page)->site.number == 1);
  CHECK(mappings.find_unmapped(base + 5 * page)->site.number == 2);
  CHECK_FALSE(mappings.find_unmapped(base + 6 * page));
}

TEST_CASE("an event that is being written is waited for") {
  Written written;
  Mappings mappings;
  written.set_count(1);
  mappings.follow(written.file, 1);
  CHECK_FALSE(mappings.find(base));
  written.add(base, page, 1);
  mappings.follow(written.file, 1);
  CHECK(mappings.find(base));
}

TEST_CASE("events that were overwritten are counted") {
  Written written;
  for (std::uint64_t i = 0; i < mapping_events + 100; ++i)
    written.add(base + i * page, page, 1);
  Mappings mappings;
  mappings.follow(written.file, 1);
  CHECK(mappings.lost() == 100);
  CHECK_FALSE(mappings.find(base));
  CHECK(mappings.find(base + 100 * page));
}

TEST_CASE("events without sense change nothing") {
  Written written;
  written.add(base, page, 1);
  written.add(~std::uint64_t{0} - 10, 100, 2);
  written.add(base, 0, unmapped);
  written.add(std::uint64_t{1} << 60, page, 2);
  Mappings mappings;
  mappings.follow(written.file, 1);
  REQUIRE(mappings.find(base));
  CHECK(mappings.totals(2) == nullptr);
}
