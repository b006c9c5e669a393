// The short paths of the fast engine against its general ones: results are equal.
#include <algorithm>
#include <vector>

#include "base/random.hpp"
#include "sim/data_bus.hpp"
#include "sim/fast_banks.hpp"
#include "sim/test_runs.hpp"

using namespace nearfar;
using namespace nearfar::sim;

namespace {

/// A data bus that compares each reservation with all earlier ones.
class PlainBus {
public:
  explicit PlainBus(const Device& device) : t_(device.timing) {}

  Time book(Time at, std::uint32_t rank, std::uint32_t group, bool write) {
    Time begin = t_.whole_clocks(at);
    while (std::ranges::any_of(booked_, [&](const Booked& other) {
      const Time apart = other.begin > begin ? other.begin - begin : begin - other.begin;
      if (apart < std::max(t_.burst + (other.rank == rank ? 0 : t_.tRTRS), t_.tCCD)) return true;
      return other.group == group && apart < (other.write ? t_.tCCDLWR : t_.tCCDL);
    }))
      begin += t_.clock;
    booked_.push_back({begin, rank, group, write});
    if (booked_.size() > 400) booked_.erase(booked_.begin());
    return begin;
  }

private:
  struct Booked {
    Time begin;
    std::uint32_t rank;
    std::uint32_t group;
    bool write;
  };
  Timing t_;
  std::vector<Booked> booked_;
};

/// Lines of runs, strides and random accesses, a few of each in turn.
class Mixed {
public:
  explicit Mixed(std::uint64_t seed) : random_(seed) {}

  std::uint64_t next() {
    if (left_-- == 0) {
      left_ = random_.below(200);
      step_ = random_.below(3) ? random_.below(20) : 0;
      line_ = random_.below(1 << 20);
    }
    line_ += step_;
    return step_ ? line_ : random_.below(1 << 20);
  }
  Random& random() { return random_; }

private:
  Random random_;
  std::uint64_t left_ = 0;
  std::uint64_t step_ = 0;
  std::uint64_t line_ = 0;
};

Device with_channels(double channels, double group_distance) {
  Figures figures = ddr4_figures();
  for (auto& [name, figure] : figures)
    if (name == "tCCDL") figure = group_distance;
  figures.emplace_back("channels", channels);
  return made("ddr4", MemoryKind::commands, figures);
}

} // namespace

TEST_CASE("data that continue a run begin as soon as a comparison with all others allows") {
  for (const double group_distance : {4.0, 8.0, 11.0}) {
    const Device device = with_channels(1, group_distance);
    DataBus bus(device);
    PlainBus plain(device);
    Random random(7);
    Time now = 0;
    for (int i = 0; i < 1'200; ++i) {
      const bool saturated = i / 200 % 2;
      now += random.below(saturated ? 4'000 : 20'000);
      const std::uint64_t word = random.next();
      const auto rank = static_cast<std::uint32_t>(word % 64 == 0);
      const std::uint32_t group = 4 * rank + static_cast<std::uint32_t>(i % 4);
      const Time at = now + (word / 64 % 8 == 0 ? random.below(100'000) : 0);
      const bool write = word / 512 % 2;
      REQUIRE(bus.book(at, rank, group, write) == plain.book(at, rank, group, write));
    }
  }
}

TEST_CASE("reads of open rows take the same time on the short and on the general path") {
  for (const char* mapping : {"rorabacobgch", "rochrababgco", "rorababgchco"})
    for (const PagePolicy page : {PagePolicy::open, PagePolicy::closed})
      for (const std::uint64_t writes : {0u, 5u, 30u})
        for (const bool posted : {false, true}) {
          Controller controller;
          controller.page = page;
          controller.mapping = *parse_mapping(mapping);
          const Device device = with_channels(2, 8);
          FastBanks both(device, controller);
          FastBanks general(device, controller);
          Mixed lines(writes + 1);
          Time now = 0;
          std::vector<Time> ends(10);
          for (std::size_t i = 0; i < 20'000; ++i) {
            const std::uint64_t line = lines.next();
            const bool write = lines.random().below(100) < writes;
            now += lines.random().below(20) ? 0 : lines.random().below(3'000'000);
            Time& oldest = ends[i % ends.size()];
            now = std::max(now, oldest);
            if (write && posted) {
              const Time accepted = both.post(now, line);
              REQUIRE(general.post(now, line) == accepted);
              now = accepted;
            } else {
              oldest = both.serve(now, line, write);
              REQUIRE(general.serve_any(now, line, write) == oldest);
            }
          }
          REQUIRE(both.drain(now) == general.drain(now));
          both.finish(now);
          general.finish(now);
          const Activity& a = both.activity();
          const Activity& b = general.activity();
          CHECK(a.row_hits == b.row_hits);
          CHECK(a.reads == b.reads);
          CHECK(a.activates == b.activates);
          CHECK(a.array_writes == b.array_writes);
          CHECK(a.refreshes == b.refreshes);
          CHECK(a.active == b.active);
        }
}

TEST_CASE("a run has the same result if all its requests take the general path") {
  for (const Issue issue : {Issue::blocking, Issue::window, Issue::trace_time})
    for (const double link : {0.0, 30e9}) {
      Mixed lines(3);
      std::vector<Request> requests(20'000);
      for (Request& request : requests) {
        request.address = lines.next() * line_bytes;
        request.gap = lines.random().below(4) ? 0 : lines.random().below(50'000);
        request.write = lines.random().below(50) == 0;
        if (lines.random().below(30) == 0) request.depends = 1;
        request.prefetch = !request.write && lines.random().below(30) == 0;
      }
      Setup setup = all_far(ddr4(), Engine::fast);
      setup.core.issue = issue;
      setup.far.link.bytes_per_s = link;
      setup.far.link.queue = 8;
      const Outcome outcome = run(setup, requests, true);
      for (Request& request : requests)
        if (request.depends == 0) request.depends = max_depends + 1; // as none, but is examined
      const Outcome general = run(setup, requests, true);
      CHECK(outcome.end == general.end);
      CHECK(outcome.compute == general.compute);
      CHECK(outcome.tiers[0].reads == general.tiers[0].reads);
      CHECK(outcome.tiers[0].read_time == general.tiers[0].read_time);
      CHECK(outcome.tiers[0].read_ns.total() == general.tiers[0].read_ns.total());
      CHECK(outcome.tiers[0].ended.counts() == general.tiers[0].ended.counts());
      CHECK(outcome.tiers[0].activity.row_hits == general.tiers[0].activity.row_hits);
    }
}
