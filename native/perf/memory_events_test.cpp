// Units are described here as the kernel's documents and drivers say, not copied from a machine.
#include "perf/memory_events.hpp"

#include <doctest/doctest.h>
#include <fstream>

#include "perf/pmu.hpp"
#include "test_support.hpp"

namespace nearfar::perf {

namespace {

struct Devices {
  test::Folder folder;

  void put(const std::string& path, const char* text) {
    const std::filesystem::path file = folder.path(path.c_str());
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  void intel(const std::string& unit, const char* type, const char* loads, const char* precise) {
    put(unit + "/type", type);
    put(unit + "/format/event", "config:0-7");
    put(unit + "/format/umask", "config:8-15");
    put(unit + "/format/ldlat", "config1:0-15");
    put(unit + "/events/mem-loads", loads);
    put(unit + "/caps/max_precise", precise);
  }
  std::vector<MemoryEvent> find() const {
    Result<std::vector<MemoryEvent>> events = find_memory_events(folder.path().c_str());
    REQUIRE(bool(events));
    return *events;
  }
};

constexpr const char* loads = "event=0xcd,umask=0x1,ldlat=3";

} // namespace

TEST_CASE("a machine without hardware events offers none") {
  Devices devices;
  CHECK(devices.find().empty());
  devices.put("software/type", "1");
  devices.put("cpu/type", "4"); // a processor of AMD without mem-loads
  CHECK(devices.find().empty());
}

TEST_CASE("load latency of a Skylake server") {
  Devices devices;
  devices.intel("cpu", "4", loads, "3");
  const std::vector<MemoryEvent> events = devices.find();
  REQUIRE(events.size() == 1);
  const perf_event_attr& attr = events[0].attr;
  CHECK(events[0].hardware == MemoryEvent::Hardware::intel_pebs);
  CHECK(events[0].name == "cpu/mem-loads,ldlat=30/P");
  CHECK(attr.type == 4);
  CHECK(attr.config == 0x1cd);
  CHECK(attr.config1 == min_load_latency_cycles);
  CHECK(attr.precise_ip == 2);
  CHECK(attr.exclude_kernel == 1);
  CHECK((attr.sample_type & PERF_SAMPLE_DATA_SRC) != 0);
  CHECK((attr.sample_type & PERF_SAMPLE_WEIGHT) != 0);
  CHECK((attr.sample_type & PERF_SAMPLE_ADDR) != 0);
  CHECK_FALSE(events[0].leader);
}

TEST_CASE("a virtual machine whose counters are without PEBS offers none") {
  Devices devices;
  devices.intel("cpu", "4", loads, "0");
  CHECK(devices.find().empty());
}

TEST_CASE("a hybrid processor has an event of each kind of core, and one with a leader") {
  Devices devices;
  devices.intel("cpu_core", "4", loads, "3");
  devices.put("cpu_core/events/mem-loads-aux", "event=0x03,umask=0x82");
  devices.intel("cpu_atom", "10", "event=0xd0,umask=0x5,ldlat=3", "1");
  const std::vector<MemoryEvent> events = devices.find();
  REQUIRE(events.size() == 2);
  REQUIRE(events[0].leader);
  CHECK(events[0].leader->config == 0x8203);
  CHECK(events[0].leader->type == 4);
  CHECK(events[1].attr.type == 10);
  CHECK(events[1].attr.config == 0x5d0);
  CHECK(events[1].attr.precise_ip == 1);
  CHECK_FALSE(events[1].leader);
}

TEST_CASE("IBS of Zen 3 samples all ops, and the kernel") {
  Devices devices;
  devices.put("ibs_op/type", "11");
  devices.put("ibs_op/format/cnt_ctl", "config:19");
  const std::vector<MemoryEvent> events = devices.find();
  REQUIRE(events.size() == 1);
  CHECK(events[0].hardware == MemoryEvent::Hardware::amd_ibs);
  CHECK(events[0].name == "ibs_op/cnt_ctl=1/");
  CHECK(events[0].attr.type == 11);
  CHECK(events[0].attr.config == 1u << 19);
  CHECK(events[0].attr.precise_ip == 0);
  CHECK(events[0].attr.exclude_kernel == 0);
  CHECK(events[0].samples_kernel);
  CHECK((events[0].attr.sample_type & PERF_SAMPLE_RAW) != 0);
}

TEST_CASE("IBS of Zen 5 samples misses of the L3 cache in user code") {
  Devices devices;
  devices.put("ibs_op/type", "11");
  devices.put("ibs_op/format/cnt_ctl", "config:19");
  devices.put("ibs_op/format/l3missonly", "config:16");
  devices.put("ibs_op/format/swfilt", "config2:0");
  const std::vector<MemoryEvent> events = devices.find();
  REQUIRE(events.size() == 1);
  CHECK(events[0].attr.config == (1u << 19 | 1u << 16));
  CHECK(events[0].attr.config2 == 1);
  CHECK(events[0].attr.exclude_kernel == 1);
  CHECK_FALSE(events[0].samples_kernel);
}

TEST_CASE("terms are put into the bits of their format") {
  Devices devices;
  devices.put("cpu/type", "4");
  devices.put("cpu/format/event", "config:0-7,32-35");
  devices.put("cpu/format/any", "config:21");
  devices.put("cpu/format/all", "config2:0-63");
  devices.put("cpu/format/odd", "elsewhere:0-3");
  const std::optional<Pmu> pmu = Pmu::find(devices.folder.path().c_str(), "cpu");
  REQUIRE(pmu);
  perf_event_attr attr{};
  CHECK(bool(pmu->encode("event=0xabc,any,all=0xffffffffffffffff", attr)));
  CHECK(attr.config == (0xa000000bcull | 1u << 21));
  CHECK(attr.config2 == UINT64_MAX);
  CHECK(bool(pmu->encode("event=1", attr))); // replaces
  CHECK(attr.config == (1ull | 1u << 21));
  for (const char* wrong : {"event=0x1abcd", "event=12x", "odd=1"}) {
    Status done = pmu->encode(wrong, attr);
    REQUIRE_FALSE(bool(done));
    CHECK(done.error().code == Errc::bad_input);
  }
  CHECK(pmu->encode("none=1", attr).error().code == Errc::unsupported);
}

TEST_CASE("an event that cannot be encoded is an error") {
  Devices devices;
  devices.intel("cpu", "4", "event=0xcd,offcore=1", "2");
  Result<std::vector<MemoryEvent>> events = find_memory_events(devices.folder.path().c_str());
  REQUIRE_FALSE(bool(events));
  CHECK(events.error().code == Errc::unsupported);
}

} // namespace nearfar::perf
