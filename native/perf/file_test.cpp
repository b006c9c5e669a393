#include "perf/file.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fstream>
#include <string>
#include <zstd.h>

#include "perf/test_bytes.hpp"
#include "test_support.hpp"

namespace nearfar::perf {

namespace {

perf_event_attr timed() {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TIME;
  attr.sample_id_all = 1;
  return attr;
}

perf_event_attr addressed() {
  perf_event_attr attr = timed();
  attr.type = 10;
  attr.sample_type |= PERF_SAMPLE_ADDR;
  return attr;
}

Bytes timed_sample(std::uint64_t ip) {
  return record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, Bytes().u64(1).u64(ip).u64(100));
}

Bytes addressed_sample(std::uint64_t ip, std::uint64_t address) {
  return record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
                Bytes().u64(2).u64(ip).u64(101).u64(address));
}

Bytes comm_record(std::uint64_t id) {
  Bytes body;
  body.u32(7).u32(7).name("program").u64(100).u64(id);
  return record(PERF_RECORD_COMM, 0, body);
}

Bytes text(std::string_view content) {
  Bytes padded;
  padded.name(content);
  return Bytes(Bytes().u32(static_cast<std::uint32_t>(padded.size())).append(padded));
}

Bytes event_names() {
  Bytes bytes;
  bytes.u32(2).u32(sizeof(perf_event_attr));
  bytes.put(timed()).u32(1).append(text("cpu-clock")).u64(1);
  bytes.put(addressed()).u32(1).append(text("mem-loads")).u64(2);
  return bytes;
}

Bytes build_id_body(std::uint8_t length) {
  Bytes body;
  body.u32(UINT32_MAX);
  for (std::uint8_t byte = 1; byte <= 20; ++byte)
    body.put(byte);
  body.put(length).put(std::uint8_t{0}).put(std::uint16_t{0}).name("/usr/bin/true");
  return body;
}

FileParts two_events() {
  FileParts parts;
  parts.events = {{timed(), {1}}, {addressed(), {2}}};
  parts.records.append(comm_record(0)).append(timed_sample(0x10));
  parts.records.append(addressed_sample(0x20, 0x3000)).append(timed_sample(0x30));
  parts.features = {{Feature::build_id, record(67, 1u << 15, build_id_body(16))},
                    {Feature::cpu_description, text("A CPU")},
                    {Feature::event_description, event_names()},
                    {Feature::pmu_mappings, Bytes(Bytes().u32(1).u32(10).append(text("cpu")))}};
  return parts;
}

/// fmemopen() does not open nothing.
Result<DataFile> opened(Bytes& bytes) {
  return DataFile::read(os::Stream(fmemopen(bytes.data(), bytes.size(), "rb")), "memory");
}

struct Read {
  std::vector<std::size_t> events;
  std::vector<std::uint64_t> ips;
  std::string error;
};

Read read_all(Result<DataFile>& file) {
  Read read;
  if (!file) {
    read.error = file.error().what;
    return read;
  }
  for (;;) {
    Result<const EventRecord*> next = file->next();
    if (!next) {
      CHECK(next.error().code == Errc::bad_input);
      read.error = next.error().what;
      return read;
    }
    if (*next == nullptr) return read;
    read.events.push_back((*next)->event);
    if (const auto* sample = std::get_if<Sample>(&(*next)->record)) read.ips.push_back(sample->ip);
  }
}

Read read_all(Bytes bytes) {
  Result<DataFile> file = opened(bytes);
  return read_all(file);
}

std::vector<std::uint8_t> compressed(const Bytes& plain, ZSTD_CCtx* context, std::size_t from,
                                     std::size_t to) {
  std::vector<std::uint8_t> packed(ZSTD_compressBound(plain.size()) + 64);
  ZSTD_inBuffer in{plain.data() + from, to - from, 0};
  ZSTD_outBuffer out{packed.data(), packed.size(), 0};
  REQUIRE(ZSTD_compressStream2(context, &out, &in, ZSTD_e_flush) == 0);
  packed.resize(out.pos);
  return packed;
}

/// Two records of one stream, cut within a record of its content.
Bytes compressed_records(const Bytes& plain, bool padded) {
  const std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(),
                                                                        ZSTD_freeCCtx);
  Bytes made;
  const std::size_t cut = plain.size() / 2 + 3;
  for (const auto& [from, to] : {std::pair(std::size_t{0}, cut), std::pair(cut, plain.size())}) {
    const std::vector<std::uint8_t> packed = compressed(plain, context.get(), from, to);
    Bytes body;
    if (padded) body.u64(packed.size());
    body.append(packed);
    while (padded && body.size() % 8 != 0)
      body.put(std::uint8_t{0});
    made.append(record(padded ? 83 : 81, 0, body));
  }
  return made;
}

} // namespace

TEST_CASE("records are returned with their events, and facts are read") {
  Bytes bytes = file_of(two_events());
  Result<DataFile> file = opened(bytes);
  const Read read = read_all(file);
  CHECK(read.error == "");
  CHECK(read.events == std::vector<std::size_t>{0, 0, 1, 0});
  CHECK(read.ips == std::vector<std::uint64_t>{0x10, 0x20, 0x30});
  CHECK(file->complete());
  REQUIRE(file->events().size() == 2);
  CHECK(file->events()[1].name == "mem-loads");
  CHECK(file->events()[1].ids == std::vector<std::uint64_t>{2});
  CHECK(file->facts().cpu == "A CPU");
  CHECK(file->facts().pmus.at(10) == "cpu");
  REQUIRE(file->facts().build_ids.size() == 1);
  CHECK(file->facts().build_ids[0].bytes.size() == 16);
  CHECK(file->facts().build_ids[0].file == "/usr/bin/true");
}

TEST_CASE("a file that was written to a pipe is read") {
  const auto attr_record = [](const perf_event_attr& attr, std::uint64_t id) {
    return record(64, 0, Bytes(Bytes().put(attr).u64(id)));
  };
  Bytes records;
  records.append(attr_record(timed(), 1)).append(attr_record(addressed(), 2));
  records.append(record(80, 0, Bytes(Bytes().u64(12).append(event_names()))));
  records.append(record(67, 0, build_id_body(0)));
  records.append(record(66, 0, Bytes().u32(16))).u64(UINT64_MAX).u64(UINT64_MAX);
  records.append(record(71, 0, Bytes().u64(8))).u64(UINT64_MAX);
  records.append(addressed_sample(0x20, 0x3000));
  Bytes bytes = pipe_of(records);
  Result<DataFile> file = opened(bytes);
  const Read read = read_all(file);
  CHECK(read.error == "");
  CHECK(read.events == std::vector<std::size_t>{1});
  CHECK(file->events()[1].name == "mem-loads");
  CHECK(file->facts().build_ids[0].bytes.size() == 20);
  CHECK(read_all(pipe_of(comm_record(0))).error ==
        "'memory' is damaged at offset 16: a record precedes all events");
}

TEST_CASE("compressed records are read, also those cut between two parts") {
  for (const bool padded : {false, true}) {
    FileParts parts = two_events();
    parts.records = compressed_records(parts.records, padded);
    const Read read = read_all(file_of(parts));
    CHECK(read.error == "");
    CHECK(read.ips == std::vector<std::uint64_t>{0x10, 0x20, 0x30});
  }
}

TEST_CASE("compressed records that are damaged are refused") {
  FileParts parts = two_events();
  const Bytes plain = parts.records;
  parts.records = compressed_records(plain, false);
  parts.records.back() ^= 0xff;
  CHECK(read_all(file_of(parts)).error != "");
  parts.records = record(81, 0, Bytes().u64(1));
  CHECK(read_all(file_of(parts)).error.find("cannot be decompressed") != std::string::npos);
  parts.records = compressed_records(compressed_records(plain, false), false);
  CHECK(read_all(file_of(parts)).error.find("is not one of the kernel") != std::string::npos);
  Bytes half = plain;
  half.resize(half.size() - 8);
  parts.records = compressed_records(half, false);
  CHECK(read_all(file_of(parts)).error.find("truncated") != std::string::npos);
}

TEST_CASE("a file of a killed perf ends with its last whole record") {
  FileParts parts = two_events();
  parts.features.clear();
  parts.records.resize(parts.records.size() - 4);
  Bytes bytes = file_of(parts);
  FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.data.size = 0;
  std::memcpy(bytes.data(), &header, sizeof header);
  Result<DataFile> file = opened(bytes);
  const Read read = read_all(file);
  CHECK(read.error == "");
  CHECK(read.ips.size() == 2);
  CHECK_FALSE(file->complete());
}

TEST_CASE("a file cut anywhere is an error") {
  const Bytes whole = file_of(two_events());
  for (std::size_t bytes = 1; bytes < whole.size(); ++bytes) {
    Bytes cut;
    cut.append({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes)});
    CHECK(read_all(cut).error != "");
  }
}

TEST_CASE("each byte of a file may be wrong") {
  const Bytes whole = file_of(two_events());
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const std::uint8_t value : {std::uint8_t{0}, std::uint8_t{0x7f}, std::uint8_t{0xff}}) {
      Bytes wrong = whole;
      wrong[at] = value;
      read_all(wrong); // ends, and the sanitizers see nothing
    }
}

TEST_CASE("headers that lie are refused") {
  const auto changed = [](auto change) {
    Bytes bytes = file_of(two_events());
    FileHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    change(header);
    std::memcpy(bytes.data(), &header, sizeof header);
    return read_all(bytes).error;
  };
  CHECK(changed([](FileHeader& header) { header.attrs.size = UINT64_MAX; }) ==
        "'memory' is truncated: its attributes end after its end");
  CHECK(changed([](FileHeader& header) { header.attrs.size = 0; }) == "'memory' has no events");
  CHECK(changed([](FileHeader& header) { header.attr_size = 8; }) ==
        "'memory' has attributes of unknown size");
  CHECK(changed([](FileHeader& header) { header.data.offset = UINT64_MAX; }) ==
        "'memory' is truncated: its records end after its end");
  CHECK(changed([](FileHeader& header) { header.start.size = 17; }) ==
        "'memory' has a header of unknown size");
  CHECK(changed([](FileHeader& header) { header.features[0] |= 1u << 24; }) ==
        "'memory' is part of a folder of perf record --threads");
  CHECK(changed([](FileHeader& header) { header.features[3] = UINT64_MAX; }).find("truncated") !=
        std::string::npos);
  CHECK(changed([](FileHeader& header) { std::memcpy(&header, swapped_magic, 8); }) ==
        "'memory' is of a machine with another byte order");
  CHECK(changed([](FileHeader& header) { header.start.magic[0] = 'Q'; }) ==
        "'memory' is not a perf.data file");
}

TEST_CASE("events that disagree on the place of their id are refused") {
  FileParts parts = two_events();
  parts.events[1].first.sample_type &= ~std::uint64_t{PERF_SAMPLE_IDENTIFIER};
  CHECK(read_all(file_of(parts)).error ==
        "'memory' has events that record their id in different places");
}

TEST_CASE("a sample of an unknown event is refused") {
  FileParts parts = two_events();
  parts.events[1].second = {3};
  CHECK(read_all(file_of(parts)).error.find("unknown event") != std::string::npos);
}

TEST_CASE("files are opened by path") {
  test::Folder folder;
  const std::string path = folder.path("perf.data");
  const Bytes bytes = file_of(two_events());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  Result<DataFile> file = DataFile::open(path.c_str());
  CHECK(read_all(file).ips.size() == 3);
  Result<DataFile> none = DataFile::open(folder.path("none").c_str());
  REQUIRE_FALSE(bool(none));
  CHECK(none.error().code == Errc::not_found);
}

} // namespace nearfar::perf
