// Reservations of data buses and of activates, against their rules.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "base/random.hpp"
#include "sim/activates.hpp"
#include "sim/data_bus.hpp"
#include "sim/test_devices.hpp"

using namespace nearfar;
using namespace nearfar::sim;

namespace {

struct Booked {
  std::int64_t at;
  std::uint32_t rank;
  std::uint32_t group;
};

std::int64_t apart(const Booked& a, const Booked& b) { return std::abs(a.at - b.at); }

} // namespace

TEST_CASE("data follow each other at the distance of their ranks and groups") {
  const Device device = ddr4(); // clocks of 1 ns
  DataBus bus(device);
  CHECK(bus.book(1'000, 0, 0, false) == 1'000);
  CHECK(bus.book(1'000, 0, 1, false) == 5'000);    // burst
  CHECK(bus.book(1'000, 0, 0, false) == 9'000);    // tCCDL
  CHECK(bus.book(1'000, 1, 4, false) == 15'000);   // burst and tRTRS
  CHECK(bus.book(99'500, 0, 0, false) == 100'000); // whole clocks
  CHECK(bus.book(30'000, 0, 0, false) == 30'000);  // before the latest one
}

TEST_CASE("data that are reserved in any order keep their distances") {
  const Device device = ddr4();
  const Timing& t = device.timing;
  DataBus bus(device);
  Random random(3);
  std::vector<Booked> all;
  for (Time now = 0; now < 20'000'000; now += random.below(9'000)) {
    const auto rank = static_cast<std::uint32_t>(random.below(2));
    const std::uint32_t group = 4 * rank + static_cast<std::uint32_t>(random.below(4));
    const Time at = now + random.below(200'000);
    all.push_back({static_cast<std::int64_t>(bus.book(at, rank, group, false)), rank, group});
    REQUIRE(all.back().at >= static_cast<std::int64_t>(at));
    for (std::size_t i = all.size() - std::min<std::size_t>(all.size(), 300); i + 1 < all.size();
         ++i) {
      const bool turns = all[i].rank != rank;
      REQUIRE(apart(all[i], all.back()) >= static_cast<std::int64_t>(t.burst + turns * t.tRTRS));
      if (all[i].group == group)
        REQUIRE(apart(all[i], all.back()) >= static_cast<std::int64_t>(t.tCCDL));
    }
  }
}

TEST_CASE("a bus accepts times far ahead, and distances of more than a word of its map") {
  Figures figures = ddr4_figures();
  for (auto& [name, figure] : figures)
    if (name == "burst" || name == "tCCD" || name == "tCCDL") figure = 40;
  DataBus bus(made("slow", MemoryKind::commands, figures));
  for (Time i = 0; i < 1'000; ++i)
    CHECK(bus.book(0, 0, static_cast<std::uint32_t>(i % 2), false) == 40'000 * i);
  CHECK(bus.book(5'000'000'000, 0, 0, false) == 5'000'000'000);
  CHECK(bus.book(5'000'000'000, 0, 0, false) == 5'000'040'000);
}

TEST_CASE("activates that are reserved in any order keep tRRD, tRRDL and tFAW") {
  const Timing t = ddr4().timing;
  Activates activates(t);
  Random random(5);
  std::vector<Booked> all;
  for (Time now = 0; now < 20'000'000; now += random.below(18'000)) {
    const auto group = static_cast<std::uint32_t>(random.below(4));
    const Time at = now + random.below(150'000);
    all.push_back({static_cast<std::int64_t>(activates.book(at, group)), 0, group});
    REQUIRE(all.back().at >= static_cast<std::int64_t>(at));
  }
  std::sort(all.begin(), all.end(), [](const Booked& a, const Booked& b) { return a.at < b.at; });
  for (std::size_t i = 4; i < all.size(); ++i) {
    REQUIRE(apart(all[i], all[i - 1]) >= static_cast<std::int64_t>(t.tRRD));
    REQUIRE(apart(all[i], all[i - 4]) >= static_cast<std::int64_t>(t.tFAW));
    if (all[i].group == all[i - 1].group)
      REQUIRE(apart(all[i], all[i - 1]) >= static_cast<std::int64_t>(t.tRRDL));
  }
}
