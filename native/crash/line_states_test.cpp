#include "crash/line_states.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <vector>

#include "os/pages.hpp"

using namespace nearfar::crash;

namespace {

constexpr std::uint64_t pool_bytes = 3 * 4096 + 100;

struct Memory {
  nearfar::Result<nearfar::os::MappedRange> mapping = nearfar::os::map_range(
      LineStates::memory_bytes(pool_bytes), nearfar::os::PageSize::small_4k, -1, false);
  LineStates lines{mapping->data(), pool_bytes};

  std::vector<std::uint64_t> known() const {
    std::vector<std::uint64_t> found;
    lines.for_known_lines(
        0, pool_bytes, [&](const LineState&, const LinePart& part) { found.push_back(part.line); });
    return found;
  }
};

} // namespace

TEST_CASE("parts of a line") {
  const LinePart middle = LinePart::first_of(64 + 6, 64 + 9);
  CHECK(middle.line == 1);
  CHECK(middle.words == 0b110);
  CHECK(middle.bytes == 0b1'1100'0000);
  const LinePart end = LinePart::first_of(60, 200);
  CHECK(end.line == 0);
  CHECK(end.words == 0x8000);
  CHECK(end.bytes == 0xF000'0000'0000'0000);
  const LinePart whole = LinePart::first_of(64, 200);
  CHECK(whole.words == all_words);
  CHECK(whole.bytes == ~Bytes{0});
  CHECK(bytes_of(0b101) == 0xF0F);
  CHECK(words_of(0x1020) == 0b1010);
}

TEST_CASE("lines become known with for_lines, in the order of addresses, up to the pool's end") {
  Memory memory;
  memory.lines.for_lines(3 * 4096 + 60, 40, [](LineState&, const LinePart&) {});
  memory.lines.for_lines(60, 8,
                         [](LineState& line, const LinePart& part) { line.dirty = part.words; });
  CHECK(memory.known() == std::vector<std::uint64_t>{0, 1, 192, 193});
  CHECK(memory.lines.find(0)->dirty == 0x8000);
  CHECK(memory.lines.find(2) == nullptr);
}

TEST_CASE("a forgotten line is unknown, and its memory is used again without what it held") {
  Memory memory;
  LineState& line = memory.lines.add(5);
  line.dirty = all_words;
  memory.lines.add_transaction(line, 1, [](std::uint32_t) { return true; }).logged = 1;
  memory.lines.add_transaction(line, 2, [](std::uint32_t) { return true; }).logged = 2;
  memory.lines.forget(5);
  CHECK(memory.known().empty());
  for (std::uint64_t next = 10; next < 13; ++next) {
    const LineState& fresh = memory.lines.add(next);
    CHECK(fresh.dirty == 0);
    CHECK(fresh.logged == 0);
    CHECK(fresh.next == 0);
  }
  memory.lines.forget_all();
  CHECK(memory.known().empty());
}

TEST_CASE("transactions that are active keep what they logged; one that ended gives its place") {
  Memory memory;
  LineState& line = memory.lines.add(0);
  std::vector<std::uint32_t> active{1, 2};
  const auto is_active = [&](std::uint32_t transaction) {
    return std::find(active.begin(), active.end(), transaction) != active.end();
  };
  memory.lines.add_transaction(line, 1, is_active).logged = 0b01;
  memory.lines.add_transaction(line, 2, is_active).logged = 0b10;
  REQUIRE(memory.lines.find_transaction(line, 1) != nullptr);
  CHECK(memory.lines.find_transaction(line, 1)->logged == 0b01);
  CHECK(memory.lines.find_transaction(line, 2)->logged == 0b10);
  active = {2, 3};
  CHECK(memory.lines.add_transaction(line, 3, is_active).logged == 0);
  CHECK(memory.lines.find_transaction(line, 1) == nullptr);
  CHECK(memory.lines.find_transaction(line, 2)->logged == 0b10);
}
