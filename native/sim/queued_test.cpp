#include "sim/queued.hpp"

#include "base/random.hpp"
#include "sim/test_devices.hpp"

using namespace nearfar;
using namespace nearfar::sim;

namespace {

QueuedMemory make(bool buffered) {
  Figures figures = {{"read_latency", 375},
                     {"write_latency", 100},
                     {"read_bandwidth", 6.4e9}, // 40 ns a unit
                     {"write_bandwidth", 2.56e9},
                     {"access_unit_bytes", 256}};
  if (buffered) {
    figures.emplace_back("buffer0_bytes", 16384);
    figures.emplace_back("buffer0_entry_bytes", 256);
    figures.emplace_back("buffer0_latency", 180);
  }
  Result<QueuedMemory> memory = QueuedMemory::create(made("it", MemoryKind::queued, figures));
  REQUIRE(memory);
  return std::move(*memory);
}

} // namespace

TEST_CASE("a read has the latency of the buffer that holds its line, else of the medium") {
  QueuedMemory memory = make(true);
  CHECK(memory.serve(0, 0, false) == 375'000);
  CHECK(memory.serve(1'000'000, 3, false) == 1'180'000); // the same 256 bytes
  CHECK(memory.serve(2'000'000, 4, false) == 2'375'000);
  CHECK(memory.activity().buffer_hits == 1);
}

TEST_CASE("reads are limited by the bandwidth of the medium") {
  QueuedMemory memory = make(false);
  Time end = 0;
  for (std::uint64_t i = 0; i < 100; ++i)
    end = memory.serve(0, i * 4, false);
  CHECK(end == 99 * 40'000 + 375'000);
}

TEST_CASE("writes are combined in the buffer, and are accepted at once until it is full") {
  QueuedMemory memory = make(true);
  Time end = 0;
  for (std::uint64_t i = 0; i < 64 * 4; ++i)
    end = memory.serve(0, i, true);
  CHECK(end == 100'000); // all of them in the buffer
  for (std::uint64_t i = 0; i < 6400; ++i)
    end = memory.serve(0, 1000 + i, true);
  const double units = 6400 / 4.0 - 64;
  CHECK(static_cast<double>(end) == doctest::Approx(units * 100e3 + 100e3).epsilon(0.02));
}

TEST_CASE("reads and writes share a bandwidth, or have separate ones whose sum is bounded") {
  Figures figures = {{"read_latency", 100},
                     {"write_latency", 100},
                     {"read_bandwidth", 16e9}, // 4 ns a line
                     {"write_bandwidth", 16e9}};
  const auto end_of = [&](double write_share) {
    Result<QueuedMemory> memory = QueuedMemory::create(made("it", MemoryKind::queued, figures));
    REQUIRE(memory);
    Time end = 0;
    Random random(3);
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      const bool write = random.below(100) < static_cast<std::uint64_t>(100 * write_share);
      end = std::max(end, memory->serve(0, i, write));
    }
    return static_cast<double>(end);
  };
  CHECK(end_of(0) == doctest::Approx(20'000 * 4e3).epsilon(0.01));
  CHECK(end_of(0.5) == doctest::Approx(20'000 * 4e3).epsilon(0.01));
  figures.emplace_back("both_bandwidth", 25.6e9); // 2.5 ns a line
  CHECK(end_of(0) == doctest::Approx(20'000 * 4e3).epsilon(0.01));
  CHECK(end_of(0.5) == doctest::Approx(20'000 * 2.5e3).epsilon(0.02));
  CHECK(end_of(0.1) ==
        doctest::Approx(18'000 * 4e3).epsilon(0.02)); // the read bandwidth is the bound
}
