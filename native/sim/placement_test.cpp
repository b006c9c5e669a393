#include "sim/placement.hpp"

#include <doctest/doctest.h>

using namespace nearfar;
using namespace nearfar::sim;

namespace {

constexpr std::uint64_t page = 4096;

Placer make(const Plan& plan, bool physical = false) {
  Result<Placer> placer = Placer::create(plan, physical);
  REQUIRE(placer);
  return std::move(*placer);
}

Request at(std::uint64_t address, bool write = false, std::uint32_t object = no_object) {
  return {address, 0, object, 0, write};
}

/// The location of a request under a rule that moves pages, the moved lines, and the kernel time.
struct Placed {
  PlacedAccess access;
  std::vector<PlacedAccess> moved;
  Time stall = 0;
};
Placed place(Placer& placer, const Request& request, Time now = 0) {
  Placed placed;
  placed.access = placer.place(request, now, placed.moved, placed.stall);
  return placed;
}

} // namespace

TEST_CASE(
    "a page with a physical address has the frame of its number, also after it moved far again") {
  Plan plan;
  plan.ranges = {{page, 2 * page, true}};
  Placer fixed = make(plan, true);
  CHECK(fixed.place_static(at(5 * page + 64)).line == 5 * lines_a_page + 1);
  CHECK(fixed.place_static(at(page)).line == lines_a_page);
  Plan moving;
  moving.rule = PlacementRule::memory_mode;
  moving.near_bytes = page;
  Placer cached = make(moving, true);
  CHECK(place(cached, at(7 * page)).access.line == 7 * lines_a_page);
  moving.rule = PlacementRule::clock_dwf;
  Placer written = make(moving, true);
  CHECK(place(written, at(9 * page)).access.line == 9 * lines_a_page);
  CHECK(place(written, at(9 * page, true)).access.near);
  CHECK(place(written, at(4 * page, true)).access.near); // evicts the other page
  CHECK(place(written, at(9 * page)).access.line == 9 * lines_a_page);
}

TEST_CASE("a plan places by object, then by address, then by default") {
  Plan plan;
  plan.ranges = {{0x1000, 0x3000, true}, {0x5000, 0x6000, true}};
  plan.objects = {0, 1, 2};
  Placer placer = make(plan);
  CHECK(!placer.place_static(at(0xfff)).near);
  CHECK(placer.place_static(at(0x1000)).near);
  CHECK(placer.place_static(at(0x2fff)).near);
  CHECK(!placer.place_static(at(0x3000)).near);
  CHECK(placer.place_static(at(0x5abc)).near);
  CHECK(!placer.place_static(at(0x1000, false, 0)).near);
  CHECK(placer.place_static(at(0x9000, false, 1)).near);
  CHECK(placer.place_static(at(0x1000, false, 2)).near);
  CHECK(!placer.place_static(at(0x9000, false, 7)).near);
}

TEST_CASE("frames are assigned page by page, separately in each memory") {
  Plan plan;
  plan.ranges = {{page, 2 * page, true}};
  Placer placer = make(plan);
  CHECK(placer.place_static(at(5 * page + 64)).line == 1);
  CHECK(placer.place_static(at(page)).line == 0);
  CHECK(placer.place_static(at(9 * page)).line == lines_a_page);
  CHECK(placer.place_static(at(5 * page + 128)).line == 2);
}

TEST_CASE("invalid plans are refused") {
  Plan plan;
  plan.ranges = {{5, 5, true}};
  CHECK(!Placer::create(plan));
  plan.ranges = {{5, 9, true}, {8, 10, true}};
  CHECK(!Placer::create(plan));
  plan = Plan{};
  plan.rule = PlacementRule::interleave;
  plan.far_weight = 0;
  CHECK(!Placer::create(plan));
  plan.rule = PlacementRule::clock_dwf;
  CHECK(!Placer::create(plan));
}

TEST_CASE("interleave keeps its weights") {
  Plan plan;
  plan.rule = PlacementRule::interleave;
  plan.near_weight = 3;
  Placer placer = make(plan);
  unsigned near = 0;
  for (std::uint64_t i = 0; i < 400; ++i)
    near += placer.place_static(at(i * page)).near;
  CHECK(near == 300);
}

TEST_CASE("memory mode: near is a direct-mapped cache that writes back") {
  Plan plan;
  plan.rule = PlacementRule::memory_mode;
  plan.near_bytes = page;
  Placer placer = make(plan);
  Placed first = place(placer, at(0, true)); // a miss: far is read, near is filled
  CHECK(!first.access.near);
  CHECK(!first.access.write);
  REQUIRE(first.moved.size() == 1);
  CHECK(first.moved[0].near);
  CHECK(first.moved[0].write);
  CHECK(place(placer, at(0)).access.near);
  const Placed evicting = place(placer, at(page)); // same line of near, other line of far
  REQUIRE(evicting.moved.size() == 3);
  CHECK(evicting.moved[0].near);
  CHECK(!evicting.moved[1].near);
  CHECK(evicting.moved[1].write);
  CHECK(evicting.moved[1].line == 0);
  CHECK(place(placer, at(2 * page)).moved.size() == 1); // a clean line is dropped
}

TEST_CASE("CLOCK-DWF: a write moves its page near, reads do not") {
  Plan plan;
  plan.rule = PlacementRule::clock_dwf;
  plan.near_bytes = 2 * page;
  Placer placer = make(plan);
  CHECK(!place(placer, at(0)).access.near);
  const Placed written = place(placer, at(0, true));
  CHECK(written.access.near);
  CHECK(written.moved.size() == 2 * lines_a_page);
  CHECK(written.stall == plan.move_cost);
  CHECK(place(placer, at(page, true)).access.near); // allocated near
  CHECK(placer.moved_pages() == 1);
  CHECK(place(placer, at(2 * page, true)).access.near); // another page is evicted
  CHECK(placer.moved_pages() == 2);
  unsigned near = 0;
  for (std::uint64_t i = 0; i < 3; ++i)
    near += place(placer, at(i * page)).access.near;
  CHECK(near == 2);
}

TEST_CASE("hot pages move near after hot_touches touches, within the rate limit") {
  Plan plan;
  plan.rule = PlacementRule::hot_pages;
  plan.near_bytes = page;
  Placer placer = make(plan);
  CHECK(place(placer, at(0)).access.near); // first touch
  CHECK(!place(placer, at(page)).access.near);
  CHECK(!place(placer, at(page)).access.near); // hot, but beyond the rate limit at this time
  const Time later = 10'000'000'000;           // 10 ms
  CHECK(place(placer, at(page), later).access.near);
  CHECK(placer.moved_pages() == 2);
  CHECK(!place(placer, at(0), later).access.near);
}
