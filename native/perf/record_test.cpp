#include "perf/record.hpp"

#include <algorithm>
#include <asm/perf_regs.h>
#include <doctest/doctest.h>
#include <string>
#include <sys/mman.h>

#include "perf/test_bytes.hpp"

namespace nearfar::perf {

namespace {

perf_event_attr sampling(std::uint64_t fields) {
  perf_event_attr attr{};
  attr.sample_type = fields;
  attr.sample_id_all = 1;
  return attr;
}

/// Names and build ids of the value point into `bytes`.
template <class Kind>
Kind decoded(const perf_event_attr& attr, const Bytes& bytes) {
  Result<Record> made = decode(attr, bytes);
  REQUIRE_MESSAGE(bool(made), std::string(made ? "" : made.error().what));
  REQUIRE(std::holds_alternative<Kind>(*made));
  return std::get<Kind>(*made);
}

constexpr std::uint64_t gprs = 0xff0fff; // AX to SS, R8 to R15, as x86-64 permits

/// Every field that a sample can have, in the kernel's order, and each optional part not empty.
Bytes full_sample() {
  Bytes body;
  body.u64(77).u64(0x401000).u32(10).u32(11).u64(123456).u64(0x7f00).u64(77).u64(5);
  body.u32(3).u32(0).u64(1000);                     // cpu, period
  body.u64(2).u64(50).u64(60);                      // read: a group of two, times
  body.u64(1).u64(77).u64(0).u64(2).u64(78).u64(0); // value, id, lost
  body.u64(3).u64(0xa).u64(0xb).u64(0xc);           // call chain
  body.u32(12).u64(0x1122334455667788).u32(9);      // raw
  body.u64(2).u64(0);                               // branches: hardware index
  for (int word = 0; word < 2 * 3 + 2; ++word)
    body.u64(1); // and their counters
  body.u64(PERF_SAMPLE_REGS_ABI_64);
  for (std::uint64_t number = 0; number < 24; ++number)
    if ((gprs >> number & 1) != 0) body.u64(0x100 + number);
  body.u64(16).u64(1).u64(2).u64(8);                                        // stack, filled to 8
  body.put(std::uint32_t{321}).put(std::uint16_t{7}).put(std::uint16_t{8}); // weights
  body.u64(0x68100142).u64(0);                            // data source, transaction
  body.u64(PERF_SAMPLE_REGS_ABI_64).u64(1).u64(2).u64(3); // AX and a vector register
  body.u64(0x1234000);                                    // physical address
  body.u64(42).u64(4096).u64(8192);                       // cgroup, page sizes
  body.u64(8).u64(0xdead);                                // aux
  return record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_EXACT_IP, body);
}

perf_event_attr full_attr() {
  perf_event_attr attr = sampling((PERF_SAMPLE_MAX - 1) & ~std::uint64_t{PERF_SAMPLE_WEIGHT});
  attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_LOST |
                     PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_HW_INDEX | 1u << 19;
  attr.sample_regs_user = gprs;
  attr.sample_regs_intr = 1 | std::uint64_t{3} << PERF_REG_X86_XMM0;
  attr.sample_stack_user = 16;
  return attr;
}

} // namespace

TEST_CASE("a sample with every field is decoded") {
  const Bytes bytes = full_sample();
  const auto sample = decoded<Sample>(full_attr(), bytes);
  CHECK(sample.user_mode);
  CHECK(sample.exact_ip);
  CHECK(sample.ip == 0x401000);
  CHECK(sample.pid == 10);
  CHECK(sample.tid == 11);
  CHECK(sample.time == 123456);
  CHECK(sample.addr == 0x7f00);
  CHECK(sample.id == 77);
  CHECK(sample.cpu == 3);
  CHECK(sample.period == 1000);
  CHECK(sample.weight == 321);
  CHECK(sample.data_src == 0x68100142);
  CHECK(sample.phys_addr == 0x1234000);
  CHECK(sample.raw.size() == 12);
  CHECK(sample.user_registers.abi == PERF_SAMPLE_REGS_ABI_64);
  CHECK(sample.user_registers.present == gprs);
  CHECK(sample.user_registers.values[PERF_REG_X86_R15] == 0x100 + PERF_REG_X86_R15);
  CHECK(sample.user_registers.values[PERF_REG_X86_IP] == 0x100 + PERF_REG_X86_IP);
  CHECK_FALSE(sample.user_registers.has(PERF_REG_X86_DS));
  CHECK(sample.has(PERF_SAMPLE_ADDR));
  CHECK_FALSE(sample.has(PERF_SAMPLE_WEIGHT));
}

TEST_CASE("a sample cut anywhere is an error") {
  const Bytes whole = full_sample();
  for (std::size_t bytes = 8; bytes < whole.size(); ++bytes) {
    Bytes cut;
    cut.append({whole.begin() + 8, whole.begin() + static_cast<std::ptrdiff_t>(bytes)});
    CHECK_FALSE(bool(decode(full_attr(), record(PERF_RECORD_SAMPLE, 0, cut))));
    CHECK_FALSE(bool(decode(full_attr(), ByteSpan(whole).first(bytes))));
  }
}

TEST_CASE("lengths inside a sample that do not fit are errors") {
  for (const std::uint64_t field : {PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_BRANCH_STACK,
                                    PERF_SAMPLE_STACK_USER, PERF_SAMPLE_AUX, PERF_SAMPLE_RAW})
    for (const std::uint64_t length :
         {0x100 + (std::uint64_t{1} << 61), 0x100 + (std::uint64_t{1} << 63), UINT64_MAX})
      CHECK_FALSE(
          bool(decode(sampling(field), record(PERF_RECORD_SAMPLE, 0, Bytes().u64(length).u64(0)))));
  perf_event_attr group = sampling(PERF_SAMPLE_READ);
  group.read_format = PERF_FORMAT_GROUP;
  CHECK_FALSE(bool(decode(group, record(PERF_RECORD_SAMPLE, 0, Bytes().u64(UINT64_MAX).u64(0)))));
}

TEST_CASE("parts of a sample may be empty") {
  perf_event_attr attr = sampling(PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER |
                                  PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT);
  attr.sample_regs_user = gprs;
  Bytes body;
  body.u64(99);                        // one counter
  body.u64(0);                         // no call chain
  body.u64(PERF_SAMPLE_REGS_ABI_NONE); // a kernel thread
  body.u64(0);                         // no stack, so no filled size
  body.u64(std::uint64_t{1} << 40);
  const auto sample = decoded<Sample>(attr, record(PERF_RECORD_SAMPLE, 1, body));
  CHECK_FALSE(sample.user_mode);
  CHECK(sample.user_registers.present == 0);
  CHECK(sample.weight == std::uint64_t{1} << 40);
}

TEST_CASE("a period that is not sampled is that of the event") {
  perf_event_attr attr = sampling(PERF_SAMPLE_IP);
  attr.sample_period = 1009;
  const Bytes bytes = record(PERF_RECORD_SAMPLE, 0, Bytes().u64(1));
  CHECK(decoded<Sample>(attr, bytes).period == 1009);
  attr.freq = 1;
  CHECK(decoded<Sample>(attr, bytes).period == 0);
}

TEST_CASE("MMAP2 is decoded with its build id and time") {
  const auto attr = sampling(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
                             PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP);
  Bytes body;
  body.u32(5).u32(6).u64(0x400000).u64(0x2000).u64(0x1000);
  body.put(std::uint8_t{20}).put(std::uint8_t{0}).put(std::uint16_t{0});
  for (std::uint8_t byte = 1; byte <= 20; ++byte)
    body.put(byte);
  body.u32(PROT_READ | PROT_EXEC).u32(MAP_PRIVATE).name("/usr/bin/true");
  body.u32(5).u32(6).u64(999).u32(1).u32(0).u64(31); // sample_id
  const Bytes bytes =
      record(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID, body);
  const auto mapping = decoded<Mapping>(attr, bytes);
  CHECK(mapping.pid == 5);
  CHECK(mapping.tid == 6);
  CHECK(mapping.address == 0x400000);
  CHECK(mapping.length == 0x2000);
  CHECK(mapping.file_offset == 0x1000);
  CHECK(mapping.executable);
  CHECK(mapping.protection == (PROT_READ | PROT_EXEC));
  CHECK(mapping.flags == MAP_PRIVATE);
  CHECK(mapping.build_id.size() == 20);
  CHECK(mapping.build_id.back() == 20);
  CHECK(mapping.file == "/usr/bin/true");
  CHECK(mapping.sample_id.time == 999);
  CHECK(mapping.sample_id.cpu == 1);
  CHECK(mapping.sample_id.id == 31);
}

TEST_CASE("a mapping of data, by MMAP, and a build id that is too long") {
  Bytes body;
  body.u32(5).u32(5).u64(0x1000).u64(0x1000).u64(0).name("//anon");
  auto attr = sampling(0);
  const Bytes bytes =
      record(PERF_RECORD_MMAP, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_DATA, body);
  const auto mapping = decoded<Mapping>(attr, bytes);
  CHECK_FALSE(mapping.executable);
  CHECK(mapping.file == "//anon");
  Bytes named;
  named.u32(5).u32(5).u64(0x1000).u64(0x1000).u64(0).u64(255).u64(0).u64(0).u64(0).name("f");
  CHECK(decoded<Mapping>(attr, record(PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID, named))
            .build_id.size() == 20);
}

TEST_CASE("a file name without an end stops before the sample_id") {
  Bytes body;
  body.u32(5).u32(5).u64(0x1000).u64(0x1000).u64(0).u64(0x6161616161616161).u64(0x62);
  const Bytes bytes = record(PERF_RECORD_MMAP, PERF_RECORD_MISC_USER, body);
  const auto mapping = decoded<Mapping>(sampling(PERF_SAMPLE_TIME), bytes);
  CHECK(mapping.file == "aaaaaaaa");
  CHECK(mapping.sample_id.time == 0x62);
}

TEST_CASE("names, tasks and losses are decoded") {
  const auto attr = sampling(PERF_SAMPLE_TIME);
  Bytes comm;
  comm.u32(1).u32(2).name("worker").u64(8);
  const Bytes bytes = record(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, comm);
  const auto named = decoded<Comm>(attr, bytes);
  CHECK(named.exec);
  CHECK(named.tid == 2);
  CHECK(named.name == "worker");
  CHECK(named.sample_id.time == 8);
  Bytes task;
  task.u32(1).u32(2).u32(3).u32(4).u64(55).u64(56);
  const auto fork = decoded<Fork>(attr, record(PERF_RECORD_FORK, 0, task));
  CHECK(fork.pid == 1);
  CHECK(fork.parent_pid == 2);
  CHECK(fork.tid == 3);
  CHECK(fork.parent_tid == 4);
  CHECK(fork.time == 55);
  CHECK(decoded<Exit>(attr, record(PERF_RECORD_EXIT, 0, task)).pid == 1);
  const auto lost = decoded<Lost>(attr, record(PERF_RECORD_LOST, 0, Bytes().u64(7).u64(9).u64(1)));
  CHECK(lost.id == 7);
  CHECK(lost.count == 9);
  CHECK(decoded<LostSamples>(attr, record(PERF_RECORD_LOST_SAMPLES, 0, Bytes().u64(4).u64(1)))
            .count == 4);
  const Bytes throttle = Bytes().u64(10).u64(7).u64(7).u64(10);
  CHECK(decoded<Throttle>(attr, record(PERF_RECORD_THROTTLE, 0, throttle)).starts);
  CHECK_FALSE(decoded<Throttle>(attr, record(PERF_RECORD_UNTHROTTLE, 0, throttle)).starts);
}

TEST_CASE("records of other types are passed by") {
  const auto attr = sampling(PERF_SAMPLE_TIME);
  const auto other = decoded<OtherRecord>(attr, record(PERF_RECORD_SWITCH, 0, Bytes().u64(3)));
  CHECK(other.type == PERF_RECORD_SWITCH);
  CHECK(other.sample_id.time == 3);
  CHECK(decoded<OtherRecord>(attr, record(first_file_record, 0, Bytes())).type == 64);
}

TEST_CASE("records that do not fit are errors") {
  const auto attr = sampling(PERF_SAMPLE_TIME);
  CHECK_FALSE(bool(decode(attr, {})));
  Bytes tiny;
  tiny.put(perf_event_header{PERF_RECORD_SAMPLE, 0, 4}).u64(0);
  CHECK_FALSE(bool(decode(attr, tiny)));
  CHECK_FALSE(bool(decode(attr, record(PERF_RECORD_SWITCH, 0, Bytes()))));
  for (const std::uint32_t type : {PERF_RECORD_MMAP, PERF_RECORD_MMAP2, PERF_RECORD_COMM,
                                   PERF_RECORD_FORK, PERF_RECORD_LOST, PERF_RECORD_THROTTLE}) {
    Result<Record> made = decode(attr, record(type, 0, Bytes().u32(1).u64(0)));
    REQUIRE_FALSE(bool(made));
    CHECK(made.error().code == Errc::bad_input);
  }
}

TEST_CASE("the event of a record is found by its id") {
  const auto identified = sampling(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP);
  CHECK(event_id(identified, record(PERF_RECORD_SAMPLE, 0, Bytes().u64(6).u64(0))) == 6);
  CHECK(event_id(identified, record(PERF_RECORD_COMM, 0, Bytes().u64(0).u64(0).u64(6))) == 6);
  const auto old = sampling(PERF_SAMPLE_ID | PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU);
  CHECK(event_id(old, record(PERF_RECORD_SAMPLE, 0, Bytes().u64(0).u64(1).u64(6).u64(2))) == 6);
  CHECK(event_id(old, record(PERF_RECORD_SWITCH, 0, Bytes().u64(1).u64(6).u64(2))) == 6);
  CHECK_FALSE(event_id(sampling(PERF_SAMPLE_IP), record(PERF_RECORD_SAMPLE, 0, Bytes().u64(0))));
  CHECK_FALSE(event_id(identified, record(PERF_RECORD_SAMPLE, 0, Bytes())));
}

} // namespace nearfar::perf
