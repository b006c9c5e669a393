#include "sample/perf_data.hpp"

#include <doctest/doctest.h>
#include <fstream>

#include "perf/test_bytes.hpp"
#include "test_support.hpp"

using namespace nearfar;
using namespace nearfar::sample;
using nearfar::perf::Bytes;

namespace {

constexpr std::uint32_t process = 7;
constexpr std::uint64_t code_at = 0x400000;
constexpr std::uint64_t data_at = 0x700000001000;

perf_event_attr clock_event(bool with_registers) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.sample_period = 500'000;
  attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  if (with_registers) attr.sample_type |= PERF_SAMPLE_REGS_USER;
  attr.sample_regs_user = register_mask();
  attr.sample_id_all = 1;
  return attr;
}

perf_event_attr load_event(std::uint32_t type) {
  perf_event_attr attr = clock_event(false);
  attr.type = type;
  attr.sample_period = 1009;
  attr.sample_type |= PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC;
  return attr;
}

/// The record's event, place and time; `mode` is PERF_RECORD_MISC_USER or _KERNEL.
Bytes clock_sample(std::uint64_t ip, std::uint64_t time, std::uint16_t mode, bool with_registers) {
  Bytes body;
  body.u64(1).u64(ip).u32(process).u32(process).u64(time);
  if (with_registers) {
    body.u64(PERF_SAMPLE_REGS_ABI_64).u64(data_at); // RAX comes first
    for (unsigned i = 1; i < registers; ++i)
      body.u64(0x1000);
  }
  return record(PERF_RECORD_SAMPLE, mode, body);
}

Bytes load_sample(std::uint64_t time, std::uint64_t latency, std::uint64_t source,
                  std::uint64_t address = data_at) {
  Bytes body;
  body.u64(2).u64(code_at).u32(process).u32(process).u64(time);
  body.u64(address).u64(latency).u64(source);
  return record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, body);
}

Bytes code_mapping(const std::string& file, std::uint64_t time) {
  Bytes body;
  body.u32(process).u32(process).u64(code_at).u64(4096).u64(0).name(file);
  body.u32(process).u32(process).u64(time).u64(1);
  return record(PERF_RECORD_MMAP, PERF_RECORD_MISC_USER, body);
}

class Files {
public:
  /// A load through RAX, then instructions that do nothing.
  std::string code() {
    std::string bytes(4096, '\x90');
    bytes.replace(1024, 3, "\x48\x8b\x18");
    std::ofstream(folder_.path("code"), std::ios::binary) << bytes;
    return folder_.path("code");
  }
  std::string perf_data(const perf::FileParts& parts) {
    const Bytes bytes = file_of(parts);
    std::ofstream(folder_.path("perf.data"), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return folder_.path("perf.data");
  }

private:
  test::Folder folder_;
};

/// A load that local memory served: op, level, as the kernel numbers them.
constexpr std::uint64_t served_by_memory = 0x02 | std::uint64_t{0x80 | 0x02} << 5;

} // namespace

TEST_CASE("clock samples of a file have the address that the registers give") {
  Files files;
  perf::FileParts parts;
  parts.events = {{clock_event(true), {1}}};
  parts.records.append(clock_sample(code_at + 1027, 200, PERF_RECORD_MISC_USER, true))
      .append(clock_sample(code_at + 1027, 300, PERF_RECORD_MISC_KERNEL, true))
      .append(code_mapping(files.code(), 100)); // later in the file, earlier in time
  Collector collector(CodeSource::recorded_process);
  REQUIRE(collect_perf_data(files.perf_data(parts).c_str(), collector));
  REQUIRE(collector.store.all().size() == 1);
  const Sample& sample = collector.store.all().front();
  CHECK(sample.kind == SampleKind::clock);
  CHECK(sample.address == data_at);
  CHECK(sample.period == 500'000);
  CHECK(sample.thread == process);
  CHECK(collector.code.all()[sample.code].is_readable);
  CHECK(collector.code.all()[sample.code].is_load);
  CHECK(collector.programs.at(process).samples == 1);
}

TEST_CASE("a mapping of a later round than its sample is taken before it") {
  const auto round_end =
      perf::record(static_cast<std::uint32_t>(perf::FileRecord::finished_round), 0, {});
  Files files;
  perf::FileParts parts;
  parts.events = {{clock_event(true), {1}}};
  parts.records.append(clock_sample(code_at + 1027, 200, PERF_RECORD_MISC_USER, true))
      .append(round_end)
      .append(code_mapping(files.code(), 100))
      .append(round_end)
      .append(clock_sample(code_at + 1030, 300, PERF_RECORD_MISC_USER, true))
      .append(round_end);
  Collector collector(CodeSource::recorded_process);
  REQUIRE(collect_perf_data(files.perf_data(parts).c_str(), collector));
  REQUIRE(collector.store.all().size() == 2);
  for (const CodeLocation& place : collector.code.all())
    CHECK(place.is_readable);
}

TEST_CASE("code of a recorded process is not read from a process that has its number now") {
  Files files;
  perf::FileParts parts;
  parts.events = {{clock_event(true), {1}}};
  parts.records.append(clock_sample(code_at, 200, PERF_RECORD_MISC_USER, true));
  Collector collector(CodeSource::recorded_process);
  REQUIRE(collect_perf_data(files.perf_data(parts).c_str(), collector));
  CHECK_FALSE(collector.code.all().front().is_readable);
}

TEST_CASE("accesses that hardware sampled have latency and level, with CPU time from a clock") {
  Files files;
  perf::FileParts parts;
  parts.events = {{clock_event(false), {1}}, {load_event(4), {2}}};
  parts.records.append(clock_sample(code_at, 200, PERF_RECORD_MISC_USER, false))
      .append(load_sample(300, 350, served_by_memory))
      .append(load_sample(400, 100'000, served_by_memory))
      .append(load_sample(500, 10, 0)); // of no access
  Collector collector(CodeSource::recorded_process);
  REQUIRE(collect_perf_data(files.perf_data(parts).c_str(), collector));
  const std::vector<Sample>& samples = collector.store.all();
  REQUIRE(samples.size() == 3);
  CHECK(samples[0].kind == SampleKind::clock);
  CHECK(samples[1].kind == SampleKind::memory);
  CHECK(samples[1].address == data_at);
  CHECK(samples[1].latency_cycles == 350);
  CHECK(samples[1].period == 1009);
  CHECK(static_cast<perf::MemoryLevel>(samples[1].level) == perf::MemoryLevel::local_ram);
  CHECK(samples[2].latency_cycles == UINT16_MAX);
}

TEST_CASE("of an access that hardware sampled, the stack is known by the thread's clock samples") {
  constexpr std::uint64_t stack_pointer = 0x1000; // as clock_sample() has it
  Files files;
  perf::FileParts parts;
  parts.events = {{clock_event(true), {1}}, {load_event(4), {2}}};
  parts.records.append(clock_sample(code_at, 200, PERF_RECORD_MISC_USER, true))
      .append(load_sample(300, 350, served_by_memory, stack_pointer + 256))
      .append(load_sample(400, 350, served_by_memory));
  Collector collector(CodeSource::recorded_process);
  REQUIRE(collect_perf_data(files.perf_data(parts).c_str(), collector));
  const std::vector<Sample>& samples = collector.store.all();
  REQUIRE(samples.size() == 3);
  CHECK(collector.data.all()[samples[1].data].kind == trace::SiteKind::stack);
  CHECK(collector.data.all()[samples[2].data].kind != trace::SiteKind::stack);
}

TEST_CASE("files without samples of use are refused, with the command that records them") {
  Files files;
  perf::FileParts parts;
  std::string why;
  SUBCASE("no registers") {
    parts.events = {{clock_event(false), {1}}};
    parts.records.append(clock_sample(code_at, 200, PERF_RECORD_MISC_USER, false));
    why = "clock without the registers";
  }
  SUBCASE("cycles, whose samples are not of accesses") {
    parts.events = {{load_event(PERF_TYPE_HARDWARE), {2}}};
    parts.records.append(load_sample(300, 350, served_by_memory));
    why = "neither registers nor latencies";
  }
  SUBCASE("no samples") {
    parts.events = {{clock_event(true), {1}}};
    parts.records.append(code_mapping("/bin/true", 100));
    why = "no samples";
  }
  Collector collector(CodeSource::recorded_process);
  Status done = collect_perf_data(files.perf_data(parts).c_str(), collector);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == Errc::bad_input);
  CHECK(std::string(done.error().what).find(why) != std::string::npos);
  CHECK(std::string(done.error().next).ends_with("perf mem record -- PROGRAM"));
}
