#include "storelog/log_file.hpp"

#include <cstring>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "os/file.hpp"
#include "test_support.hpp"

using namespace nearfar;
using namespace nearfar::storelog;

namespace {

Log example() {
  Log log;
  log.pool_bytes = 10'000;
  log.image.resize(log.pool_bytes);
  log.image[5000] = std::byte{7};
  const Site site("program.c", 12);
  log.data = {std::byte{1}, std::byte{2}, std::byte{3}};
  log.events = {{EventKind::begin, 0, 0, 4, 3, site},
                {EventKind::store, 1, 3, 64, 0, Site("program.c", 13)},
                {EventKind::flush, 1, 64, 64, 3, Site::code("/lib/a.so", 0x99)},
                {EventKind::load, 2, 8, 64, 3, site, 1},
                {EventKind::fence, 1, 0, 0, 3, site}};
  return log;
}

std::string written(const test::Folder& folder, const Log& log) {
  std::string path = folder.path("log");
  Result<os::File> file = os::create_new(path.c_str());
  REQUIRE(file);
  REQUIRE(write_log(log, "/pool", std::move(*file)));
  return path;
}

} // namespace

TEST_CASE("a log comes back as it was written") {
  const test::Folder folder;
  const Log log = example();
  Result<ReadLog> read = read_log(written(folder, log).c_str());
  REQUIRE(read);
  CHECK(read->complete);
  CHECK(read->pool_path == "/pool");
  CHECK(read->log.image == log.image);
  CHECK(read->log.data == log.data);
  REQUIRE(read->log.events.size() == log.events.size());
  for (std::size_t i = 0; i < log.events.size(); ++i) {
    const Event& a = log.events[i];
    const Event& b = read->log.events[i];
    CHECK(a.kind == b.kind);
    CHECK(a.thread == b.thread);
    CHECK(static_cast<int>(a.host) == static_cast<int>(b.host));
    CHECK(a.address == b.address);
    CHECK(a.bytes == b.bytes);
    CHECK(a.site.place() == b.site.place());
    CHECK(std::strcmp(a.site.file(), b.site.file()) == 0);
  }
  Result<ReadLog> bare = read_log(folder.path("log").c_str(), false);
  REQUIRE(bare);
  CHECK(bare->complete);
  CHECK(bare->log.events.size() == log.events.size());
  CHECK(bare->log.pool_bytes == log.pool_bytes);
  CHECK(bare->log.image.empty());
  CHECK(bare->log.data.empty());
}

TEST_CASE("what a library stored before the pool was created is part of the image") {
  const test::Folder folder;
  const std::string path = folder.path("created");
  Result<os::File> file = os::create_new(path.c_str());
  REQUIRE(file);
  LogWriter writer(std::move(*file));
  writer.begin();
  writer.pool(128, "pool");
  const std::uint32_t site = writer.site(Site("a.c", 1));
  writer.event(EventKind::store, 0, site, 8, 3, "abc");
  writer.event(EventKind::fence, 0, site, 0, 0, nullptr);
  writer.created();
  writer.event(EventKind::store, 0, site, 9, 1, "x");
  writer.end();
  Result<ReadLog> read = read_log(path.c_str());
  REQUIRE(read);
  CHECK(read->complete);
  REQUIRE(read->log.events.size() == 1);
  CHECK(read->log.events[0].address == 9);
  CHECK(std::memcmp(read->log.image.data() + 8, "abc", 3) == 0);
  CHECK(read->log.data.size() == 1);
}

TEST_CASE("a log whose descriptor the program closed goes on") {
  const test::Folder folder;
  const std::string path = folder.path("log");
  Result<os::File> file = os::create_new(path.c_str());
  REQUIRE(file);
  LogWriter writer(std::move(*file), path.c_str());
  writer.begin();
  writer.pool(128, "pool");
  writer.flush();
  close_range(3, ~0u, 0);
  const int theirs = open(folder.path("other").c_str(), O_RDWR | O_CREAT, 0600);
  REQUIRE(theirs >= 0);
  writer.end();
  CHECK_FALSE(writer.failed());
  CHECK(lseek(theirs, 0, SEEK_END) == 0);
  close(theirs);
  Result<ReadLog> read = read_log(path.c_str());
  REQUIRE(read);
  CHECK(read->complete);
}

TEST_CASE("a site comes back with its callers") {
  const test::Folder folder;
  const Site program("program.c", 7);
  const Site library = Site::code("/lib/b.so", 5).called_from(program);
  Log log = example();
  log.events[1].site = Site::code("/lib/c.so", 9).called_from(library);
  Result<ReadLog> read = read_log(written(folder, log).c_str());
  REQUIRE(read);
  CHECK(read->complete);
  const ReadLog moved = std::move(*read);
  const Site& site = moved.log.events[1].site;
  CHECK(site.offset() == 9);
  REQUIRE(site.caller() != nullptr);
  CHECK(site.caller()->offset() == 5);
  REQUIRE(site.caller()->caller() != nullptr);
  CHECK(site.caller()->caller()->line() == 7);
  CHECK(moved.log.events[0].site.caller() == nullptr);
}

TEST_CASE("a log cut anywhere is read up to the cut, and says so") {
  const test::Folder folder;
  Log log = example();
  for (int i = 0; i < 5000; ++i)
    log.events.push_back(log.events[1]); // several chunks
  const std::string path = written(folder, log);
  const auto full = std::filesystem::file_size(path);
  std::size_t most = 0;
  for (const std::uintmax_t size : {full - 1, full / 2, std::uintmax_t{100}, std::uintmax_t{16}}) {
    std::filesystem::resize_file(path, size);
    Result<ReadLog> read = read_log(path.c_str());
    REQUIRE(read);
    CHECK(!read->complete);
    CHECK(read->ending.find("cut short at offset") != std::string::npos);
    CHECK(read->log.events.size() < log.events.size());
    most = std::max(most, read->log.events.size());
  }
  CHECK(most > 1000);
  std::filesystem::resize_file(path, 7);
  CHECK(!read_log(path.c_str()));
}

TEST_CASE("what a killed program had not written is read from the second file") {
  const test::Folder folder;
  const std::string path = folder.path("log");
  Result<os::File> file = os::create_new(path.c_str());
  REQUIRE(file);
  LogWriter writer(std::move(*file));
  writer.keep_unwritten((path + ".unwritten").c_str());
  writer.begin();
  writer.pool(4096, "/pool");
  const std::uint32_t site = writer.site(Site("program.c", 13));
  const std::uint64_t word = 7;
  std::size_t events = 0;
  const auto check = [&] {
    Result<ReadLog> read = read_log(path.c_str());
    REQUIRE(read);
    CHECK(!read->complete);
    CHECK(read->ending.find("cut short at offset") != std::string::npos);
    CHECK(read->pool_path == "/pool");
    CHECK(read->log.events.size() == events);
  };
  check();
  for (; events < 500; ++events) { // several chunks
    if (events % 100 == 3) check();
    writer.event(EventKind::store, 0, site, 8 * (events % 512), sizeof word, &word);
  }
  check();
  writer.flush();
  check();
  writer.end();
  Result<ReadLog> read = read_log(path.c_str());
  REQUIRE(read);
  CHECK(read->complete);
  CHECK(read->log.events.size() == events);
}

TEST_CASE("a damaged byte is noticed wherever it is") {
  const test::Folder folder;
  const std::string path = written(folder, example());
  std::string bytes;
  {
    std::ifstream in(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  // In place: a file that is truncated and written again is written to the disk each time.
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](std::size_t at, int byte) {
    file.seekp(static_cast<std::streamoff>(at)).put(static_cast<char>(byte)).flush();
    REQUIRE(file.good());
  };
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    put(at, bytes[at] ^ 0x20);
    Result<ReadLog> read = read_log(path.c_str());
    if (read) CHECK(!read->complete);
    put(at, bytes[at]);
  }
}
