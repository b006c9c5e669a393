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
  Result<QueuedMemory> memory = QueuedMemory::create(made("it", Kind::queued, figures));
  REQUIRE(memory);
  return std::move(*memory);
}

} // namespace

TEST_CASE("a read costs the latency of what holds it") {
  QueuedMemory memory = make(true);
  CHECK(memory.serve(0, 0, false) == 375'000);
  CHECK(memory.serve(1'000'000, 3, false) == 1'180'000); // the same 256 bytes
  CHECK(memory.serve(2'000'000, 4, false) == 2'375'000);
  CHECK(memory.work().buffer_hits == 1);
}

TEST_CASE("units leave the medium at its bandwidth") {
  QueuedMemory memory = make(false);
  Time end = 0;
  for (std::uint64_t i = 0; i < 100; ++i)
    end = memory.serve(0, i * 4, false);
  CHECK(end == 99 * 40'000 + 375'000);
}

TEST_CASE("writes are combined in the buffer and run ahead by what it holds") {
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
