#include "os/block_io.hpp"

#include <array>
#include <cstring>
#include <doctest/doctest.h>
#include <vector>

#include "test_support.hpp"

using namespace nearfar;

namespace {

constexpr std::size_t block = 4096;

os::File unnamed_file(const test::Folder& folder, std::size_t bytes) {
  Result<os::File> file = os::create_unnamed(folder.path().c_str());
  REQUIRE(bool(file));
  REQUIRE(bool(os::reserve_space(*file, bytes)));
  return std::move(*file);
}

std::vector<std::byte> filled(std::byte value) { return std::vector<std::byte>(block, value); }

} // namespace

TEST_CASE("blocks come back from where they were written") {
  const test::Folder folder;
  const os::File file = unnamed_file(folder, 4 * block);
  const auto one = filled(std::byte{1});
  const auto two = filled(std::byte{2});
  REQUIRE(bool(os::write_at(file, one.data(), block, 0)));
  REQUIRE(bool(os::write_at(file, two.data(), block, 3 * block)));
  REQUIRE(bool(os::flush_file(file)));
  auto read = filled(std::byte{9});
  REQUIRE(bool(os::read_at(file, read.data(), block, 3 * block)));
  CHECK(read == two);
  REQUIRE(bool(os::read_at(file, read.data(), block, 0)));
  CHECK(read == one);
}

TEST_CASE("reading beyond the end is an error, not a short block") {
  const test::Folder folder;
  const os::File file = unnamed_file(folder, block);
  std::vector<std::byte> read(2 * block);
  Status done = os::read_at(file, read.data(), read.size(), 0);
  REQUIRE(!done);
  CHECK(done.error().code == Errc::os_error);
  CHECK(std::string(done.error().what).find("shorter") != std::string::npos);
}

TEST_CASE("a descriptor that is closed is an error that carries errno") {
  const os::File none;
  std::array<std::byte, 8> bytes{};
  Status read = os::read_at(none, bytes.data(), bytes.size(), 0);
  Status written = os::write_at(none, bytes.data(), bytes.size(), 0);
  REQUIRE(!read);
  REQUIRE(!written);
  CHECK(read.error().os_errno == EBADF);
  CHECK(written.error().os_errno == EBADF);
  CHECK(!os::flush_file(none));
}

TEST_CASE("a ring moves blocks and returns their slots") {
  const test::Folder folder;
  constexpr unsigned depth = 4;
  const os::File file = unnamed_file(folder, depth * block);
  Result<os::Ring> ring = os::Ring::create(file, depth);
  if (!ring) {
    MESSAGE("skipped: " << ring.error().what);
    CHECK(ring.error().code == Errc::unsupported);
    return;
  }
  std::vector<std::vector<std::byte>> buffers;
  for (unsigned slot = 0; slot < depth; ++slot)
    buffers.push_back(filled(std::byte(slot + 1)));
  for (const bool write : {true, false}) {
    std::array<int, depth> seen{};
    for (unsigned slot = 0; slot < depth; ++slot) {
      if (!write) std::memset(buffers[slot].data(), 0, block);
      REQUIRE(bool(ring->submit({slot, write, buffers[slot].data(), block, slot * block})));
    }
    for (unsigned i = 0; i < depth; ++i) {
      Result<unsigned> slot = ring->reap_one();
      REQUIRE(bool(slot));
      REQUIRE(*slot < depth);
      ++seen[*slot];
    }
    for (unsigned slot = 0; slot < depth; ++slot) {
      CHECK(seen[slot] == 1);
      CHECK(buffers[slot] == filled(std::byte(slot + 1)));
    }
  }
  REQUIRE(bool(ring->submit({7, false, buffers[0].data(), block, depth * block})));
  CHECK(!ring->reap_one()); // beyond the end of the file
}
