// Samples of perf.data files, on files whose header and events are right: clock samples with
// registers, page faults and accesses, of a few processes, with mappings, names, forks and ends in
// any order of time; and on the input as it is.
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_target.hpp"
#include "perf/test_bytes.hpp"
#include "sample/perf_data.hpp"

using namespace nearfar::sample;
using nearfar::fuzz::Choices;
using nearfar::perf::Bytes;
using nearfar::perf::record;

namespace {

constexpr std::uint64_t code_at = 0x400000;

perf_event_attr event(std::uint32_t type, std::uint64_t config, std::uint64_t more) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = type;
  attr.config = config;
  attr.sample_period = 1000;
  attr.sample_type =
      PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | more;
  if ((more & PERF_SAMPLE_REGS_USER) != 0) attr.sample_regs_user = register_mask();
  attr.sample_id_all = 1;
  return attr;
}

/// A process of a few, and a time of a few.
std::uint32_t process_of(Choices& choices) { return choices.take<std::uint8_t>() % 4; }
std::uint64_t time_of(Choices& choices) { return choices.take<std::uint8_t>(); }

Bytes& end_of(Bytes& body, Choices& choices) {
  const std::uint32_t process = process_of(choices);
  return body.u32(process).u32(process).u64(time_of(choices)).u64(1);
}

Bytes sample(Choices& choices) {
  const std::uint64_t id = 1 + choices.take<std::uint8_t>() % 3;
  Bytes body;
  const std::uint32_t process = process_of(choices);
  body.u64(id).u64(code_at + choices.take<std::uint16_t>()).u32(process).u32(process);
  body.u64(time_of(choices));
  if (id == 1) {
    body.u64(choices.take<std::uint8_t>() % 3);
    for (unsigned i = 0; i < registers; ++i)
      body.u64(choices.take<std::uint32_t>());
  } else {
    body.u64(choices.take<std::uint64_t>());
    if (id == 3) body.u64(choices.take<std::uint32_t>()).u64(choices.take<std::uint32_t>());
  }
  return record(PERF_RECORD_SAMPLE, choices.take<std::uint8_t>() % 8, body);
}

Bytes mapping(Choices& choices) {
  constexpr const char* files[] = {"/proc/self/exe", "/no/such/file", "//anon", "[stack]", "/tmp"};
  Bytes body;
  const std::uint32_t process = process_of(choices);
  body.u32(process).u32(process);
  body.u64(choices.take<std::uint8_t>() % 8 == 0 ? choices.take<std::uint64_t>() : code_at);
  body.u64(choices.take<std::uint8_t>() % 8 == 0 ? choices.take<std::uint64_t>() : 0x8000);
  body.u64(choices.take<std::uint16_t>());
  body.name(files[choices.take<std::uint8_t>() % std::size(files)]);
  return record(PERF_RECORD_MMAP, choices.take<std::uint16_t>(), end_of(body, choices));
}

Bytes other(Choices& choices) {
  Bytes body;
  if (choices.take<std::uint8_t>() % 2 == 0) {
    const std::uint32_t process = process_of(choices);
    body.u32(process).u32(process).name("name");
    const bool exec = choices.take<std::uint8_t>() % 2 == 0;
    return record(PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0, end_of(body, choices));
  }
  const std::uint32_t child = process_of(choices);
  const std::uint32_t parent = process_of(choices);
  body.u32(child).u32(parent).u32(child).u32(parent).u64(time_of(choices));
  return record(PERF_RECORD_FORK, 0, end_of(body, choices));
}

void collect(const Bytes& bytes) {
  const int fd = memfd_create("perf.data", MFD_CLOEXEC);
  if (fd < 0 || write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    std::abort();
  Collector collector(CodeSource::recorded_process);
  const nearfar::Status done =
      collect_perf_data(("/proc/self/fd/" + std::to_string(fd)).c_str(), collector);
  close(fd);
  if (!done && done.error().next[0] == '\0') std::abort();
  for (const Sample& one : collector.store.all())
    if (one.code >= collector.code.all().size() || one.data > collector.data.all().size())
      std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices(data, size);
  nearfar::perf::FileParts parts;
  parts.events = {{event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, PERF_SAMPLE_REGS_USER), {1}},
                  {event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, PERF_SAMPLE_ADDR), {2}},
                  {event(4, 0, PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC), {3}}};
  while (choices.more())
    switch (choices.take<std::uint8_t>() % 4) {
    case 0: parts.records.append(mapping(choices)); break;
    case 1: parts.records.append(other(choices)); break;
    default: parts.records.append(sample(choices)); break;
    }
  collect(file_of(parts));
  Bytes raw;
  raw.append({data, data + size});
  collect(raw);
  return 0;
}
