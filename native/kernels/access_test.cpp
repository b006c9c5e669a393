#include "kernels/access.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <set>
#include <vector>

using namespace nearfar::kernels;

namespace {

struct alignas(64) Line {
  std::byte bytes[64];
};

struct Fixture {
  explicit Fixture(std::size_t lines) : memory(lines) {
    fill_lines(base(), lines);
    loop.base = base();
    loop.blocks = lines;
  }
  std::byte* base() { return reinterpret_cast<std::byte*>(memory.data()); }
  std::vector<Line> memory;
  AccessLoop loop;
};

} // namespace

TEST_CASE("what is read sums up to what was foreseen, for every order and mix") {
  for (const Order order : {Order::sequential, Order::strided, Order::random})
    for (const unsigned writes : {0u, 1u, 2u})
      for (const bool nontemporal : {false, true}) {
        Fixture f(4096);
        f.loop.blocks = 1024;
        f.loop.block_lines = 4;
        f.loop.order = order;
        f.loop.stride = 7;
        f.loop.reads = 2;
        f.loop.writes = writes;
        f.loop.nontemporal = nontemporal;
        AccessLoop foreseen = f.loop;
        CHECK(run_accesses(f.loop, 3000) == expected_sum(foreseen, 3000));
        CHECK(f.loop.state == foreseen.state);
      }
}

TEST_CASE("a line that does not hold its number is found out") {
  Fixture f(64);
  f.loop.order = Order::sequential;
  std::memset(f.memory[17].bytes, 0, 8);
  AccessLoop foreseen = f.loop;
  CHECK(run_accesses(f.loop, 64) != expected_sum(foreseen, 64));
}

TEST_CASE("writes restore the numbers, past the caches too") {
  for (const bool nontemporal : {false, true}) {
    Fixture f(64);
    std::memset(f.memory.data(), 0, 64 * 64);
    AccessLoop writer = f.loop;
    writer.order = Order::sequential;
    writer.reads = 0;
    writer.writes = 1;
    writer.nontemporal = nontemporal;
    run_accesses(writer, 64);
    AccessLoop reader = f.loop;
    reader.order = Order::sequential;
    AccessLoop foreseen = reader;
    CHECK(run_accesses(reader, 64) == expected_sum(foreseen, 64));
  }
}

TEST_CASE("strides visit every block before any block twice, where they divide the region") {
  Fixture f(64);
  std::memset(f.memory.data(), 0, 64 * 64);
  f.loop.order = Order::strided;
  f.loop.stride = 8;
  f.loop.reads = 0;
  f.loop.writes = 1;
  run_accesses(f.loop, 64);
  std::set<std::size_t> missing;
  for (std::size_t i = 0; i < 64; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, f.memory[i].bytes, 8);
    if (word == 0) missing.insert(i);
  }
  CHECK(missing.empty());
}
