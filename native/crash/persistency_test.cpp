#include "crash/persistency.hpp"

#include <cstring>
#include <doctest/doctest.h>
#include <set>

#include "base/random.hpp"
#include "crash/arena.hpp"

using namespace nearfar::crash;
using namespace nearfar::storelog;

namespace {

/// A pool of four lines whose words are written through the log.
struct Program {
  alignas(64) std::uint64_t words[32] = {};
  Recorder recorder{words, sizeof words};
  Attached attached{&recorder};
  std::vector<std::byte> durable = recorder.log().image;

  void set(std::size_t word, std::uint64_t value) {
    words[word] = value;
    store(&words[word], 8);
  }
  void write_back(std::size_t word) { flush(&words[word], 8); }
  std::uint64_t durable_word(std::size_t word) const {
    std::uint64_t value;
    std::memcpy(&value, durable.data() + word * 8, 8);
    return value;
  }
};

std::uint64_t word_of(const Line& line, std::size_t word) {
  std::uint64_t value;
  std::memcpy(&value, line.data() + word % 8 * 8, 8);
  return value;
}

} // namespace

TEST_CASE("stores in a line persist as a prefix, lines independently, until flushed and fenced") {
  Program p;
  p.set(0, 1);
  p.set(8, 2);
  p.set(1, 3);
  p.write_back(0);
  fence();
  Persistency model(p.recorder.log(), CacheLoss::all, p.durable);
  REQUIRE(model.next());
  CHECK(model.event() == 4); // just before the fence
  REQUIRE(model.pending().size() == 2);
  const PendingLine& first = model.pending()[0];
  REQUIRE(first.pieces.size() == 2);
  CHECK(word_of(model.version(first, 0), 0) == 0);
  CHECK(word_of(model.version(first, 1), 0) == 1);
  CHECK(word_of(model.version(first, 1), 1) == 0);
  CHECK(word_of(model.version(first, 2), 1) == 3);
  CHECK(p.durable_word(0) == 0);
  REQUIRE(model.next()); // the end: line 1 was never flushed
  CHECK(p.durable_word(0) == 1);
  CHECK(p.durable_word(1) == 3);
  CHECK(p.durable_word(8) == 0);
  REQUIRE(model.pending().size() == 1);
  CHECK(model.pending()[0].line == 1);
  CHECK(!model.next());
}

TEST_CASE("a flush promises what the line held then, and only to the fence of its thread") {
  Program p;
  p.set(0, 1);
  p.write_back(0);
  p.set(0, 2); // after the flush
  fence();
  Persistency model(p.recorder.log(), CacheLoss::all, p.durable);
  REQUIRE(model.next());
  REQUIRE(model.next());
  CHECK(p.durable_word(0) == 1);
  REQUIRE(model.pending().size() == 1);
  CHECK(model.pending()[0].pieces.size() == 1);
}

TEST_CASE("a fence of another thread makes nothing durable") {
  Program p;
  p.set(0, 1);
  p.write_back(0);
  Log log = p.recorder.log();
  Event other = log.events.back();
  other.kind = EventKind::fence;
  other.thread = 1;
  log.events.push_back(other);
  Persistency model(log, CacheLoss::all, p.durable);
  REQUIRE(model.next());
  CHECK(model.event() == 3); // the end
  CHECK(!model.next());
  CHECK(p.durable_word(0) == 0);
}

TEST_CASE("non-temporal stores need the fence alone") {
  Program p;
  p.words[0] = 5;
  p.words[1] = 6;
  nt_store(&p.words[0], 16);
  fence();
  Persistency model(p.recorder.log(), CacheLoss::all, p.durable);
  REQUIRE(model.next());
  REQUIRE(model.pending().size() == 1);
  CHECK(model.pending()[0].pieces.size() == 2);
  REQUIRE(model.next());
  CHECK(p.durable_word(1) == 6);
  CHECK(model.pending().empty());
}

TEST_CASE("of two hosts, a line leaves the caches of one when the other accesses it") {
  Program p;
  p.set(0, 1);
  p.write_back(0); // by the other host: its caches do not hold the line
  fence();
  p.set(8, 1);
  p.set(0, 2);
  Log log = p.recorder.log();
  for (Event& event : log.events) {
    event.host = event.kind != EventKind::store || event.address == 64;
    event.thread = event.host;
  }
  SUBCASE("both lose their caches") {
    log.events[4].host = 1; // the store that takes the line over
    Persistency model(log, CacheLoss::all, p.durable);
    REQUIRE(model.next());
    CHECK(model.event() == 4);
    CHECK(p.durable_word(0) == 0);
    CHECK(model.pending().size() == 2);
    REQUIRE(model.next());
    CHECK(model.at_end());
    CHECK(p.durable_word(0) == 1);
    REQUIRE(model.pending().size() == 2);
    CHECK(static_cast<int>(model.pending()[1].host) == 1);
  }
  SUBCASE("the first dies") {
    Persistency model(log, CacheLoss::host_0, p.durable);
    REQUIRE(model.next());
    CHECK(model.event() == 3); // before the store of the survivor
    CHECK(model.pending().size() == 1);
    REQUIRE(model.next());
    CHECK(model.at_end());
    CHECK(p.durable_word(8) == 1);
    REQUIRE(model.pending().size() == 1);
    CHECK(model.pending()[0].pieces.size() == 2);
  }
}

TEST_CASE("on eADR every prefix in program order, and nothing else, can be left") {
  Program p;
  p.set(0, 1);
  p.set(8, 2);
  p.set(0, 3);
  Persistency model(p.recorder.log(), CacheLoss::none, p.durable);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seen;
  while (model.next()) {
    CHECK(model.pending().empty());
    seen.emplace_back(p.durable_word(0), p.durable_word(8));
  }
  const decltype(seen) expected{{0, 0}, {1, 0}, {1, 2}, {3, 2}};
  CHECK(seen == expected);
}

TEST_CASE("on eADR a power failure leaves a prefix of a store, eight aligned bytes at a time") {
  Program p;
  for (std::size_t word = 7; word < 10; ++word)
    p.words[word] = word;
  store(&p.words[7], 24);
  Persistency model(p.recorder.log(), CacheLoss::none, p.durable);
  std::vector<std::array<std::uint64_t, 4>> seen;
  while (model.next())
    seen.push_back({p.durable_word(7), p.durable_word(8), p.durable_word(9), model.event()});
  const decltype(seen) expected{{0, 0, 0, 0}, {7, 0, 0, 1}, {7, 8, 0, 1}, {7, 8, 9, 1}};
  CHECK(seen == expected);
}

TEST_CASE("unaligned and long stores are cut where eight aligned bytes end") {
  Program p;
  std::memset(reinterpret_cast<char*>(p.words) + 60, 1, 12); // 4 bytes, then 8 in the next line
  store(reinterpret_cast<char*>(p.words) + 60, 12);
  Persistency model(p.recorder.log(), CacheLoss::all, p.durable);
  REQUIRE(model.next());
  REQUIRE(model.pending().size() == 2);
  CHECK(static_cast<int>(model.pending()[0].pieces[0].bytes) == 4);
  CHECK(static_cast<int>(model.pending()[1].pieces[0].bytes) == 8);
}

TEST_CASE("versions that are taken from an earlier list are those of a new one") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    nearfar::Random random(seed);
    Program p;
    for (int i = 0; i < 200; ++i) {
      const std::size_t word = random.below(32);
      switch (random.below(6)) {
      case 0: p.write_back(word); break;
      case 1: fence(); break;
      default: p.set(word, random.below(3)); // values come again
      }
    }
    Persistency model(p.recorder.log(), CacheLoss::all, p.durable);
    std::vector<Undecided> kept;
    while (model.next()) {
      if (random.below(3) == 0) continue; // not each point is listed
      std::vector<Undecided> fresh;
      list_versions(model, kept);
      list_versions(model, fresh);
      REQUIRE(kept.size() == fresh.size());
      for (std::size_t slot = 0; slot < kept.size(); ++slot) {
        CHECK(kept[slot].line == fresh[slot].line);
        CHECK(kept[slot].versions == fresh[slot].versions);
        CHECK(kept[slot].pieces == fresh[slot].pieces);
        CHECK(kept[slot].after == fresh[slot].after);
        CHECK(kept[slot].differing == fresh[slot].differing);
        const PendingLine& pending = model.pending()[slot];
        for (std::size_t pieces = 0; pieces <= pending.pieces.size(); ++pieces)
          CHECK(kept[slot].versions[kept[slot].after[pieces]] == model.version(pending, pieces));
      }
    }
  }
}
