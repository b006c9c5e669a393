#include "persist/pool.hpp"

#include <cstring>
#include <doctest/doctest.h>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

#include "test_support.hpp"

using namespace nearfar;
using persist::Layout;
using persist::Pool;

namespace {

constexpr Layout layout{"pool_test", 3};
constexpr std::size_t pool_bytes = 16 << 20;

tier::Spec place(const std::string& path, const char* kind = "file:") {
  return *tier::parse((kind + path).c_str());
}

Pool make(const std::string& path, bool zero_on_free = false) {
  Result<Pool> pool = Pool::create(place(path), layout, {pool_bytes, 256, zero_on_free});
  REQUIRE_MESSAGE(pool, pool.error().what);
  return std::move(*pool);
}

/// Allocations of 1 MiB until the pool is full, linked in words of the root.
std::size_t fill(Pool& pool, std::uint64_t* words, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const Status s = pool.allocate(&words[i], 1 << 20, 1, false);
    if (s) continue;
    CHECK(s.error().code == Errc::no_space);
    CHECK(words[i] == 0);
    return i;
  }
  FAIL("the pool never filled");
  return 0;
}

bool says(const Result<Pool>& pool, Errc code, const char* part) {
  return !pool && pool.error().code == code && std::strstr(pool.error().what, part) != nullptr &&
         pool.error().next[0] != '\0';
}

} // namespace

TEST_CASE("a pool keeps its root from one opening to the next") {
  const test::Folder folder = test::Folder::quick();
  const std::string path = folder.path("a.pool");
  {
    Pool pool = make(path);
    CHECK(pool.bytes() == pool_bytes);
    CHECK(pool.root_bytes() == 256);
    CHECK(reinterpret_cast<std::uintptr_t>(pool.root()) % 64 == 0);
    for (std::size_t i = 0; i < 256; ++i)
      CHECK(pool.root()[i] == std::byte{0});
    std::memcpy(pool.root(), "kept", 5);
    CHECK(pool.at(pool.offset_of(pool.root())) == pool.root());
  }
  Result<Pool> again = Pool::open(place(path), layout);
  REQUIRE(again);
  CHECK(std::strcmp(reinterpret_cast<char*>(again->root()), "kept") == 0);
  CHECK(again->durability() == persist::Durability::msync);
  CHECK(!again->emulated());
}

TEST_CASE("memory is linked on a line, kept, and given back") {
  const test::Folder folder = test::Folder::quick();
  const std::string path = folder.path("a.pool");
  std::uint64_t first = 0;
  {
    Pool pool = make(path);
    auto* words = reinterpret_cast<std::uint64_t*>(pool.root());
    REQUIRE(pool.allocate(&words[0], 3000, 7, true));
    REQUIRE(pool.allocate(&words[1], 1 << 20, 7, true));
    for (int i = 0; i < 2; ++i) {
      CHECK(words[i] % 64 == 0);
      CHECK(pool.usable_bytes(words[i]) >= (i == 0 ? 3000u : 1u << 20));
      CHECK(pool.at(words[i])[2999] == std::byte{0});
    }
    first = words[0];
  }
  Result<Pool> pool = Pool::open(place(path), layout);
  REQUIRE(pool);
  auto* words = reinterpret_cast<std::uint64_t*>(pool->root());
  CHECK(words[0] == first);
  for (int i = 0; i < 3; ++i)
    CHECK(pool->release(&words[i]));
  CHECK(words[0] == 0);
  Pool fresh = make(folder.path("b.pool"));
  const std::size_t room = fill(fresh, reinterpret_cast<std::uint64_t*>(fresh.root()), 32);
  CHECK(fill(*pool, words, 32) == room); // all of it is there again
}

TEST_CASE("a full pool gives an error and keeps what it has") {
  const test::Folder folder = test::Folder::quick();
  Pool pool = make(folder.path("a.pool"));
  auto* words = reinterpret_cast<std::uint64_t*>(pool.root());
  const std::size_t got = fill(pool, words, 32);
  CHECK(got > 8);
  REQUIRE(pool.release(&words[0]));
  CHECK(pool.allocate(&words[0], 1 << 20, 1, false));
}

TEST_CASE("zero_on_free overwrites before it gives memory back, also after a crash") {
  const test::Folder folder = test::Folder::quick();
  const std::string path = folder.path("a.pool");
  std::uint64_t offset = 0;
  {
    Pool pool = make(path, true);
    auto* words = reinterpret_cast<std::uint64_t*>(pool.root());
    REQUIRE(pool.allocate(&words[0], 4096, 1, false));
    offset = words[0];
    std::memset(pool.at(offset), 0x5a, 4096);
    REQUIRE(pool.release(&words[0]));
    CHECK(*pool.at(offset + 100) == std::byte{0});
    // As after a crash between the two steps of release(): unlinked, not zeroed yet.
    REQUIRE(pool.allocate(&words[0], 4096, 1, false));
    offset = words[0];
    std::memset(pool.at(offset), 0x5a, 4096);
    auto* head = pool.root() - sizeof(persist::PoolHead);
    while (std::memcmp(head, &persist::PoolHead::expected_magic, 8) != 0)
      head -= 16; // libpmemobj aligns to 16
    reinterpret_cast<persist::PoolHead*>(head)->being_zeroed = offset;
    words[0] = 0;
  }
  Result<Pool> pool = Pool::open(place(path), layout);
  REQUIRE(pool);
  CHECK(pool->zero_on_free());
  CHECK(*pool->at(offset + 100) == std::byte{0});
}

TEST_CASE("pools that are not what the program expects are refused with the reason") {
  const test::Folder folder = test::Folder::quick();
  const std::string path = folder.path("a.pool");
  { const Pool pool = make(path); }
  CHECK(says(Pool::open(place(path), {"other", 3}), Errc::bad_input, "another type: it holds"));
  CHECK(says(Pool::open(place(path), {"pool_test", 4}), Errc::bad_input,
             "has version 3 of layout 'pool_test', and this program knows version 4"));
  CHECK(says(Pool::create(place(path), layout, {pool_bytes, 8}), Errc::exists, "a.pool"));
  CHECK(says(Pool::open(place(folder.path("no.pool")), layout), Errc::not_found, "no.pool"));
  CHECK(says(Pool::create(place(folder.path("b.pool")), layout, {1 << 20, 8}), Errc::bad_input,
             "too small"));
  CHECK(says(Pool::create(place(folder.path("b.pool")), layout, {std::size_t{1} << 60, 8}),
             Errc::no_space, "does not fit"));
  CHECK(says(Pool::create(*tier::parse("dram"), layout, {pool_bytes, 8}), Errc::bad_input,
             "cannot hold a pool"));
  std::ofstream(folder.path("text")) << std::string(3 << 20, 'x');
  CHECK(says(Pool::open(place(folder.path("text")), layout), Errc::bad_input, "text"));
  REQUIRE(truncate(path.c_str(), 9 << 20) == 0);
  CHECK(says(Pool::open(place(path), layout), Errc::bad_input, "cut short: it has 9437184 bytes"));
  for (const off_t bytes : {off_t{100}, off_t{0}}) {
    REQUIRE(truncate(path.c_str(), bytes) == 0);
    CHECK(says(Pool::open(place(path), layout), Errc::bad_input, "interrupted pmemobj_create()"));
  }
}

TEST_CASE("a pool with a root that leaves its object is refused") {
  const test::Folder folder = test::Folder::quick();
  for (const std::uint64_t bytes : {std::uint64_t{4096}, ~std::uint64_t{0}}) { // the last one wraps
    const std::string path = folder.path(std::to_string(bytes).c_str());
    {
      const Pool pool = make(path);
      auto* word = reinterpret_cast<std::uint64_t*>(pool.root());
      while (*--word != persist::PoolHead::expected_magic)
        ;
      reinterpret_cast<persist::PoolHead*>(word)->root_bytes = bytes;
    }
    CHECK(says(Pool::open(place(path), layout), Errc::bad_input, "a root that leaves its object"));
  }
}

TEST_CASE("a root that does not fit leaves no file") {
  const test::Folder folder = test::Folder::quick();
  CHECK(says(Pool::create(place(folder.path("a.pool")), layout, {pool_bytes, 64 << 20}),
             Errc::no_space, "no 67108864 bytes left"));
  CHECK(folder.empty());
}

TEST_CASE("a pool that is open is refused, here and in another process") {
  const test::Folder folder = test::Folder::quick();
  const std::string path = folder.path("a.pool");
  const Pool pool = make(path);
  CHECK(says(Pool::open(place(path), layout), Errc::unsupported, "already open"));
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0)
    _exit(says(Pool::open(place(path), layout), Errc::unsupported, "already open") ? 0 : 1);
  int status = 1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("a directory makes a pool without a name") {
  const test::Folder folder = test::Folder::quick();
  Pool pool = make(folder.path());
  CHECK(folder.empty());
  auto* words = reinterpret_cast<std::uint64_t*>(pool.root());
  CHECK(pool.allocate(&words[0], 4096, 1, true));
}
