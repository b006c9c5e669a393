#include "sim/test_devices.hpp"

#include <algorithm>
#include <cstring>

using namespace nearfar;
using namespace nearfar::sim;

namespace {

Figures without(Figures figures, const char* name) {
  std::erase_if(figures, [&](const auto& figure) { return figure.first == name; });
  return figures;
}

Figures with(Figures figures, const char* name, double value) {
  figures = without(figures, name);
  figures.emplace_back(name, value);
  return figures;
}

void refused(const Figures& figures, const char* name, MemoryKind kind = MemoryKind::commands) {
  const Result<Device> device = make_device("it", kind, figures);
  CAPTURE(name);
  REQUIRE(!device);
  CHECK(device.error().code == Errc::bad_input);
  CHECK(std::strstr(device.error().what, name));
}

} // namespace

TEST_CASE("a missing figure is refused by its name") {
  for (const char* name : {"clock", "tRCD", "tRP", "tRAS", "CL", "CWL", "burst", "tCCD", "tRRD",
                           "tWTR", "tWR", "tRTP", "banks", "row_bytes"})
    refused(without(ddr4_figures(), name), name);
}

TEST_CASE("a contradictory figure is refused by its name") {
  refused(with(ddr4_figures(), "tRAS", 20), "tRAS");
  refused(with(ddr4_figures(), "tCCD", 3), "tCCD");
  refused(with(ddr4_figures(), "tCCDL", 3), "tCCD");
  refused(with(ddr4_figures(), "tREFI", 600), "tREFI");
  refused(without(ddr4_figures(), "tRFC"), "tRFC");
  refused(with(ddr4_figures(), "banks", 3), "banks");
  refused(with(ddr4_figures(), "tRCD", -1), "tRCD");
  refused(with(ddr4_figures(), "clock", 0), "clock");
  refused(with(ddr4_figures(), "link_latency", 30), "link_bandwidth");
  refused(with(ddr4_figures(), "tXYZ", 30), "tXYZ");
  Figures loaded = with(ddr4_figures(), "link_bandwidth", 30e9);
  loaded.insert(loaded.end(), {{"link_load0_bandwidth", 20e9},
                               {"link_load0_latency", 50},
                               {"link_load1_bandwidth", 10e9},
                               {"link_load1_latency", 60}});
  refused(loaded, "link_latency_by_load_ns");
  refused(with(with(ddr4_figures(), "channels", 65536), "ranks", 65536), "channels");
}

TEST_CASE("buffers of a queued device must be in order") {
  const Figures figures = {{"read_latency", 375},    {"write_latency", 109},
                           {"read_bandwidth", 7e9},  {"write_bandwidth", 2e9},
                           {"buffer0_bytes", 16384}, {"buffer0_entry_bytes", 256},
                           {"buffer0_latency", 180}};
  CHECK(make_device("it", MemoryKind::queued, figures));
  refused(without(figures, "read_latency"), "read_latency", MemoryKind::queued);
  refused(with(figures, "buffer0_latency", 400), "buffered_read_latency", MemoryKind::queued);
  refused(with(figures, "buffer0_entry_bytes", 100), "buffer_entry", MemoryKind::queued);
  refused(with(figures, "write_bandwidth", 0), "write_bandwidth", MemoryKind::queued);
  refused(with(figures, "write_bandwidth", 1e-300), "write_bandwidth", MemoryKind::queued);
  refused(with(figures, "access_unit_bytes", 1e300), "access_unit_bytes", MemoryKind::queued);
  refused(with(figures, "access_unit_bytes", 1 << 30), "access_unit_bytes", MemoryKind::queued);
  refused(with(figures, "buffer0_bytes", 16384.0 * (1 << 30)), "buffer", MemoryKind::queued);
}

TEST_CASE("invalid figures of a link are refused") {
  const Figures linked = with(ddr4_figures(), "link_bandwidth", 32e9);
  CHECK(make_device("it", MemoryKind::commands, linked));
  refused(with(linked, "link_bandwidth", 1e-300), "link_bandwidth");
  refused(with(linked, "link_queue_depth", 0.5), "link_queue_depth");
  refused(with(linked, "link_queue_depth", 1e14), "link_queue_depth");
}

TEST_CASE("timings in ns are rounded up to whole clocks") {
  Figures figures = with(ddr4_figures(), "clock", 1.5);
  const Device device = made("it", MemoryKind::commands, figures);
  CHECK(device.timing.tRCD == 22'500); // 22 ns are 14.7 clocks
  CHECK(device.timing.tRP == 22'500);
  CHECK(device.timing.tREFI == 12'480'000);
}

TEST_CASE("energy is the sum over commands and background power") {
  const Device device = ddr4();
  Activity activity;
  activity.activates = 2;
  activity.reads = 3;
  activity.writes = 5;
  activity.refreshes = 1;
  activity.active = 1'000'000; // of one rank: 1 us
  const EnergyParts energy = energy_of(device, activity, 2'000'000);
  CHECK(energy.activate == doctest::Approx(2e-9));
  CHECK(energy.read == doctest::Approx(6e-9));
  CHECK(energy.write == doctest::Approx(15e-9));
  CHECK(energy.refresh == doctest::Approx(1e-7));
  CHECK(energy.background == doctest::Approx(1e-6 * 0.5 + 3e-6 * 0.3)); // two ranks for 2 us
}
