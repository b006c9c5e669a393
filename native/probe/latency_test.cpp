#include "probe/latency.hpp"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "os/block_io.hpp"
#include "probe/tampering.hpp"
#include "test_support.hpp"

using namespace nearfar;
using probe::LatencyProbe;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::uint64_t short_ns = 200'000;

tier::Spec parsed(const std::string& text) {
  Result<tier::Spec> spec = tier::parse(text.c_str());
  REQUIRE(bool(spec));
  return *spec;
}

LatencyProbe dram_probe() {
  Result<LatencyProbe> made = LatencyProbe::create(parsed("dram"), mib, test::usable_cpu());
  REQUIRE(bool(made));
  return std::move(*made);
}

} // namespace

TEST_CASE("a chase is timed over whole rounds of its loop") {
  LatencyProbe latency = dram_probe();
  REQUIRE(bool(latency.prepare(64 << 10, 64, 1, SIZE_MAX)));
  for (int i = 0; i < 3; ++i) {
    Result<probe::LatencySample> sample = latency.sample(short_ns);
    REQUIRE(bool(sample));
    CHECK(sample->steps > 0);
    CHECK(sample->steps % 16 == 0);
    CHECK(sample->latency_ns > 0.1);
    CHECK(sample->latency_ns < 10'000);
    CHECK(sample->usage.wall_ns > 0);
  }
}

TEST_CASE("eight times the time asked for is far more steps") {
  LatencyProbe latency = dram_probe();
  REQUIRE(bool(latency.prepare(16 << 10, 64, 1, SIZE_MAX)));
  // Each sample learns from the one before how long a step takes; one that was preempted learns a
  // time that is too long.
  bool is_more = false;
  for (int attempt = 0; attempt < 5 && !is_more; ++attempt) {
    REQUIRE(bool(latency.sample(short_ns)));
    Result<probe::LatencySample> once = latency.sample(short_ns);
    Result<probe::LatencySample> longer = latency.sample(8 * short_ns);
    REQUIRE(bool(once));
    REQUIRE(bool(longer));
    is_more = longer->steps > 2 * once->steps;
  }
  CHECK(is_more);
}

TEST_CASE("regions and blocks that make no sense are refused") {
  LatencyProbe latency = dram_probe();
  for (const auto& [region, block] : std::vector<std::pair<std::size_t, std::size_t>>{
           {0, 64}, {32, 64}, {mib, 8}, {mib, 48}, {2 * mib, 64}}) {
    Status prepared = latency.prepare(region, block, 1, SIZE_MAX);
    REQUIRE(!prepared);
    CHECK(prepared.error().code == Errc::bad_input);
  }
  Result<probe::LatencySample> sample = latency.sample(short_ns);
  REQUIRE(!sample);
  CHECK(sample.error().code == Errc::bad_input);
}

TEST_CASE("lines that a round visits several times are chased like others") {
  LatencyProbe latency = dram_probe();
  REQUIRE(bool(latency.prepare(64 << 10, 16, 1, SIZE_MAX)));
  Result<probe::LatencySample> sample = latency.sample(short_ns);
  REQUIRE(bool(sample));
  CHECK(sample->latency_ns > 0.1);
  CHECK(bool(latency.sample_chains(4, short_ns)));
}

TEST_CASE("loads are spaced by instructions in whole units") {
  LatencyProbe latency = dram_probe();
  REQUIRE(bool(latency.prepare(64 << 10, 64, 1, SIZE_MAX)));
  const auto spacing = kernels::Spacing::integers;
  Result<probe::LatencySample> sample = latency.sample_spaced(spacing, 64, short_ns);
  REQUIRE(bool(sample));
  CHECK(sample->latency_ns > 0.1);
  CHECK(sample->steps % kernels::max_chains == 0);
  for (const std::size_t instructions : std::vector<std::size_t>{0, 1, 40, 160}) {
    Result<probe::LatencySample> refused = latency.sample_spaced(spacing, instructions, short_ns);
    REQUIRE(!refused);
    CHECK(refused.error().code == Errc::bad_input);
  }
}

TEST_CASE("a processor that cannot be used is refused") {
  Result<LatencyProbe> made = LatencyProbe::create(parsed("dram"), mib, test::missing_cpu);
  REQUIRE(!made);
  CHECK(made.error().code == Errc::bad_input);
}

TEST_CASE("a chase that does not stand where it must is found out") {
  constexpr std::size_t blocks = 1009; // a prime, so that no number of rounds looks like none
  const test::Folder folder;
  Result<LatencyProbe> made =
      LatencyProbe::create(parsed("file:" + folder.path()), blocks * 64, test::usable_cpu());
  REQUIRE(bool(made));
  const os::File file = probe::reopen_unnamed_in(folder.path());
  REQUIRE(bool(made->prepare(blocks * 64, 64, 1, SIZE_MAX)));
  REQUIRE(bool(made->sample(short_ns)));
  const std::uint64_t wrong_rank = 0;
  for (std::size_t block = 0; block < blocks; ++block)
    REQUIRE(bool(os::write_at(file, reinterpret_cast<const std::byte*>(&wrong_rank),
                              sizeof wrong_rank, block * 64 + offsetof(kernels::ChaseNode, rank))));
  int found_out = 0;
  for (int i = 0; i < 3; ++i) // steps that are a multiple of 1009 would pass: not three times
    if (Result<probe::LatencySample> sample = made->sample(short_ns); !sample)
      found_out += sample.error().code == Errc::failed_check;
  CHECK(found_out > 0);
}
