#include <cstring>
#include <doctest/doctest.h>
#include <fstream>
#include <sstream>

#include "base/random.hpp"
#include "os/file.hpp"
#include "test_support.hpp"
#include "trace/reader.hpp"
#include "trace/varint.hpp"
#include "trace/writer.hpp"

using namespace nearfar;
using namespace nearfar::trace;

namespace {

constexpr std::size_t header_bytes = 8 + 4 + 4;

Header example_header() {
  Header header;
  header.after = After::l2;
  header.fields = {{"recorder", "qemu"}, {"program", "ls"}, {"program", "a\nb"}};
  return header;
}

/// Records of every kind, from two threads, by few and by many codes.
std::vector<Record> example_records(std::size_t count) {
  std::vector<Record> records;
  Random random(7);
  std::uint64_t instructions[2] = {};
  for (std::size_t i = 0; i < count; ++i) {
    Record record;
    record.thread = random.below(8) == 0;
    record.kind = static_cast<RecordKind>(random.below(kinds));
    record.code = record.kind == RecordKind::write_back ? 0 : 0x400000 + 4 * random.below(60);
    if (i % 5 == 0) record.code = record.kind == RecordKind::write_back ? 0 : random.next();
    record.object = static_cast<std::uint32_t>(random.below(3));
    record.line = i % 3 == 0 ? random.next() >> 6 : i;
    record.depends = random.below(4) == 0 ? static_cast<std::uint32_t>(1 + random.below(300)) : 0;
    record.instructions = instructions[record.thread] += random.below(1000);
    records.push_back(record);
  }
  return records;
}

struct Written {
  test::Folder folder = test::Folder::quick();
  std::string path = folder.path("trace");
};

/// Two objects of one site in a module, then the records, a death in the middle.
void write(const std::string& path, const std::vector<Record>& records, bool finish = true) {
  Result<os::File> file = os::create_new(path.c_str());
  REQUIRE(file);
  TraceWriter writer(file->fd(), example_header());
  CHECK(writer.thread(0) == 0);
  CHECK(writer.thread(1) == 1);
  CHECK(writer.module({"/bin/ls", "c0ffee", 0, 0x400000, 4096}) == 0);
  CHECK(writer.site({SiteKind::heap, {{0, 0x99}, {-1, 7}}, 0, 0, 0}) == 1);
  CHECK(writer.object({1, 0x10000, 640, 0, 3, alive, alive}) == 1);
  CHECK(writer.object({1, 0x20000, 64, 1, 5, alive, alive}) == 2);
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (i == records.size() / 2) writer.died(2, 77);
    writer.totals[Total::loads] = i + 1;
    writer.record(records[i]);
  }
  writer.site_totals(1, {SiteKind::heap, {}, 2, 704, 700});
  if (finish)
    REQUIRE(writer.finish());
  else
    writer.flush();
}

/// The kinds of a file's blocks, in their order.
std::vector<BlockKind> block_kinds(const std::string& bytes) {
  std::vector<BlockKind> found;
  std::uint32_t fields = 0;
  std::memcpy(&fields, bytes.data() + 12, sizeof fields);
  std::size_t at = header_bytes + fields + 4;
  for (BlockHead head; at + sizeof head < bytes.size() - 16; at += sizeof head + head.stored) {
    std::memcpy(&head, bytes.data() + at, sizeof head);
    REQUIRE(head.magic == block_magic);
    found.push_back(static_cast<BlockKind>(head.kind));
  }
  return found;
}

std::vector<Record> read_all(TraceReader& reader) {
  std::vector<Record> all;
  for (auto part = reader.next(); !part.empty(); part = reader.next())
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

Result<TraceReader> read_bytes(std::string& bytes) {
  return TraceReader::read(os::Stream(fmemopen(bytes.data(), bytes.size(), "rb")), "memory");
}

} // namespace

TEST_CASE("the exit code follows all records, whenever it was set") {
  Written written;
  Result<os::File> file = os::create_new(written.path.c_str());
  REQUIRE(file);
  TraceWriter writer(file->fd(), example_header());
  writer.set_exit_code(3);
  writer.thread(0);
  writer.record({.line = 7});
  REQUIRE(writer.finish());
  CHECK(block_kinds(contents(written.path)) == std::vector{BlockKind::threads, BlockKind::records,
                                                           BlockKind::exit_code, BlockKind::index});
  Result<TraceReader> reader = TraceReader::open(written.path.c_str());
  REQUIRE(reader);
  CHECK(read_all(*reader).size() == 1);
  CHECK(reader->tables().exit_code == 3);
}

TEST_CASE("numbers of any size come back, and past the end there are none") {
  Bytes bytes;
  const std::uint64_t numbers[] = {0, 1, 127, 128, 1u << 20, ~std::uint64_t{0}};
  for (const std::uint64_t number : numbers) {
    bytes.number(number);
    bytes.difference(number, 1000);
  }
  Cursor cursor(bytes.data(), bytes.size());
  for (const std::uint64_t number : numbers) {
    CHECK(cursor.number() == number);
    CHECK(cursor.difference(1000) == number);
  }
  CHECK_FALSE(cursor.failed());
  CHECK(cursor.number() == 0);
  CHECK(cursor.failed());
  const std::uint8_t endless[12] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1};
  Cursor damaged(endless, sizeof endless);
  damaged.number();
  CHECK(damaged.failed());
}

TEST_CASE("a trace comes back as it was written") {
  const Written written;
  const std::vector<Record> records = example_records(2 * block_records + 100);
  write(written.path, records);
  Result<TraceReader> reader = TraceReader::open(written.path.c_str());
  REQUIRE(reader);
  CHECK(reader->header().after == After::l2);
  CHECK(reader->header().fields == example_header().fields);
  CHECK(reader->header().find("program") == "ls");
  CHECK((read_all(*reader) == records));
  CHECK(reader->complete());
  CHECK(reader->ending() == "");
  CHECK(reader->totals()[Total::loads] == records.size());
  const Tables& tables = reader->tables();
  CHECK(tables.threads == std::vector<std::uint32_t>{0, 1});
  CHECK(tables.modules.at(0).path == "/bin/ls");
  CHECK((tables.sites.at(1) == Site{SiteKind::heap, {{0, 0x99}, {-1, 7}}, 2, 704, 700}));
  CHECK((tables.objects.at(1) == Object{1, 0x10000, 640, 0, 3, alive, alive}));
  CHECK((tables.objects.at(2) == Object{1, 0x20000, 64, 1, 5, records.size() / 2, 77}));
}

TEST_CASE("an empty trace is a trace") {
  const Written written;
  write(written.path, {});
  Result<TraceReader> reader = TraceReader::open(written.path.c_str());
  REQUIRE(reader);
  CHECK(reader->next().empty());
  CHECK(reader->complete());
}

TEST_CASE("a block in the middle is found by the index, and without it") {
  const Written written;
  const std::vector<Record> records = example_records(3 * block_records);
  for (const bool finish : {true, false}) {
    const std::string path = written.folder.path(finish ? "whole" : "cut");
    write(path, records, finish);
    Result<TraceReader> reader = TraceReader::open(path.c_str());
    REQUIRE(reader);
    const std::uint64_t wanted = 2 * block_records + 5;
    const auto found = reader->seek(wanted);
    REQUIRE(found.size() == block_records);
    CHECK(reader->first() == 2 * block_records);
    CHECK((found[5] == records[wanted]));
    CHECK(reader->tables().objects.size() == 3);
    CHECK(reader->seek(0).empty());
    CHECK(reader->next().empty());
    CHECK(reader->complete() == finish);
  }
}

TEST_CASE("what lies behind a damaged block is not found by the index either") {
  const Written written;
  write(written.path, example_records(3 * block_records));
  std::string bytes = contents(written.path);
  bytes[bytes.size() / 6] ^= 4; // in the first of three blocks
  Result<TraceReader> reader = read_bytes(bytes);
  REQUIRE(reader);
  CHECK(reader->seek(2 * block_records + 5).empty());
  CHECK(reader->records() == 0);
  CHECK(reader->ending().find("damaged at offset") != std::string::npos);
}

TEST_CASE("a stream of one instruction takes a byte a record at most") {
  const Written written;
  std::vector<Record> records;
  for (std::uint64_t i = 0; i < block_records; ++i)
    records.push_back({1000 + i, 0x400000, 16 * i, 1, 0, 0, RecordKind::load});
  write(written.path, records);
  CHECK(contents(written.path).size() < records.size());
}

TEST_CASE("a trace truncated anywhere is read up to the cut, which is reported") {
  const Written written;
  const std::vector<Record> records = example_records(300);
  write(written.path, records);
  const std::string whole = contents(written.path);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    std::string bytes = whole.substr(0, size);
    if (size == 0) continue; // fmemopen wants a byte
    Result<TraceReader> reader = read_bytes(bytes);
    if (!reader) {
      CHECK(size < header_bytes + 200);
      CHECK(reader.error().code == Errc::bad_input);
      continue;
    }
    const std::vector<Record> got = read_all(*reader);
    CHECK((got.empty() || got == records));
    CHECK_FALSE(reader->complete());
    CHECK(reader->ending().find("cut short at offset") != std::string::npos);
  }
}

TEST_CASE("a flipped bit is found wherever it is") {
  const Written written;
  const std::vector<Record> records = example_records(300);
  write(written.path, records);
  const std::string whole = contents(written.path);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
    Result<TraceReader> reader = read_bytes(bytes);
    if (!reader) continue;
    const std::vector<Record> got = read_all(*reader);
    CHECK((got.empty() || got == records));
    CHECK_FALSE(reader->complete());
    CHECK(reader->ending() != "");
  }
}

TEST_CASE("a file that is not a trace, or of another version, is refused") {
  const Written written;
  std::ofstream(written.path) << "something else, of some length";
  CHECK(TraceReader::open(written.path.c_str()).error().code == Errc::bad_input);
  CHECK(TraceReader::open("/nowhere/trace").error().code == Errc::not_found);
  const std::string path = written.folder.path("version");
  write(path, {});
  std::string bytes = contents(path);
  bytes[8] = 1;
  Result<TraceReader> reader = read_bytes(bytes);
  REQUIRE_FALSE(reader);
  CHECK(std::strstr(reader.error().what, "version 1") != nullptr);
}

TEST_CASE("a full disk is reported, and what was written before is a trace") {
  Result<os::File> full = os::open_existing("/dev/full", false);
  if (!full) {
    MESSAGE("skipped: /dev/full is not there");
    return;
  }
  TraceWriter writer(full->fd(), example_header());
  CHECK(writer.failed() == ENOSPC);
  CHECK(writer.finish().error().code == Errc::no_space);
}
