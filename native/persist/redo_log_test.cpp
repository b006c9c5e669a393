#include "persist/redo_log.hpp"

#include <doctest/doctest.h>
#include <vector>

#include "base/random.hpp"
#include "persist/test_memory.hpp"

using namespace nearfar;
using namespace nearfar::persist;

namespace {

constexpr std::size_t pool_bytes = 16 << 10;
constexpr std::size_t log_at = 8 << 10;
constexpr std::size_t log_lines = 32;

/// Memory with a log. The data are words from byte 128 on; the word at byte 64 is `start`.
struct Rig {
  test::Memory memory{pool_bytes, 4096};
  WriteBack write_back{Durability::flush};
  RedoLog log{place(), write_back};

  LogPlace place() {
    std::byte* base = memory.data();
    return {base, pool_bytes, reinterpret_cast<std::uint64_t*>(base + 64), base + log_at,
            log_lines};
  }
  explicit Rig() {
    *place().start = 1;
    log = RedoLog(place(), write_back);
  }
  /// As if what `other` has in memory were what a crash left.
  explicit Rig(const Rig& other) {
    std::memcpy(memory.data(), other.memory.data(), pool_bytes);
    log = RedoLog(place(), write_back);
  }
  std::uint64_t& word(std::size_t i) {
    return *reinterpret_cast<std::uint64_t*>(memory.data() + 128 + 8 * i);
  }
};

std::vector<std::byte> record(const std::vector<std::pair<std::size_t, std::uint64_t>>& writes) {
  std::vector<std::byte> bytes(sizeof(RecordHead));
  for (const auto& [word, value] : writes) {
    const std::uint64_t both[] = {RecordEntry::word(128 + 8 * word, RecordEntry::Kind::write, 8),
                                  value};
    const auto* first = reinterpret_cast<const std::byte*>(both);
    bytes.insert(bytes.end(), first, first + sizeof both);
  }
  return bytes;
}

void commit(Rig& rig, const std::vector<std::pair<std::size_t, std::uint64_t>>& writes) {
  std::vector<std::byte> bytes = record(writes);
  const auto size = static_cast<std::uint32_t>(bytes.size());
  bytes.resize(size + 64); // room up to a line
  REQUIRE(rig.log.commit(bytes.data(), size, nullptr));
}

} // namespace

TEST_CASE("a committed record is applied at once, and again after its changes were lost") {
  Rig rig;
  commit(rig, {{0, 11}, {5, 55}});
  commit(rig, {{0, 12}});
  CHECK(rig.word(0) == 12);
  CHECK(rig.word(5) == 55);
  rig.word(0) = rig.word(5) = 0; // never written back
  Rig after(rig);
  CHECK(*after.log.recover() == 2);
  CHECK(after.word(0) == 12);
  CHECK(after.word(5) == 55);
  CHECK(after.log.start() == after.log.tail());
  Rig again(after);
  CHECK(*again.log.recover() == 0);
  CHECK(again.word(0) == 12);
}

TEST_CASE("a torn record is not applied, wherever it is torn") {
  Rig rig;
  commit(rig, {{0, 1}});
  const std::size_t second = log_at + (rig.log.tail() % log_lines) * 64;
  Rig before(rig);
  std::vector<std::pair<std::size_t, std::uint64_t>> many;
  for (std::size_t i = 0; i < 12; ++i)
    many.push_back({i, 100 + i});
  commit(rig, many); // 208 bytes: four lines
  for (std::size_t kept = 0; kept < 208; kept += 8) {
    Rig torn(before);
    std::memcpy(torn.memory.data() + second, rig.memory.data() + second, kept);
    CHECK(*torn.log.recover() == 1);
    CHECK(torn.word(0) == 1);
    CHECK(torn.word(11) == 0);
  }
  for (std::size_t byte = 0; byte < 208; ++byte) {
    Rig damaged(before);
    std::memcpy(damaged.memory.data() + second, rig.memory.data() + second, 208);
    damaged.memory.data()[second + byte] ^= std::byte{0x10};
    CHECK(*damaged.log.recover() == 1);
  }
}

TEST_CASE("what follows a torn record is not applied, neither at recovery nor later") {
  Rig rig;
  commit(rig, {{0, 1}});
  commit(rig, {{1, 2}});
  commit(rig, {{2, 3}});
  Rig torn(rig);
  torn.word(0) = torn.word(1) = torn.word(2) = 0;
  torn.memory.data()[log_at + 2 * 64 + 16] ^= std::byte{1}; // the second: record 1 is on line 1
  CHECK(*torn.log.recover() == 1);
  CHECK(torn.word(1) == 0);
  CHECK(torn.word(2) == 0);
  for (std::size_t later = 1; later <= 4; ++later) { // up to the line of the third record
    commit(torn, {{3, later}});
    Rig again(torn);
    CHECK(*again.log.recover() == later);
    CHECK(again.word(1) == 0);
    CHECK(again.word(2) == 0);
    CHECK(again.word(3) == later);
  }
}

TEST_CASE("the ring wraps, and only what it still has to keep is replayed") {
  Rig rig;
  Random random(7);
  std::uint64_t model[40] = {};
  for (int step = 0; step < 2000; ++step) {
    std::vector<std::pair<std::size_t, std::uint64_t>> writes;
    for (std::uint64_t n = random.below(12); n <= 12; ++n) {
      const std::size_t at = random.below(40);
      writes.push_back({at, random.next()});
      model[at] = writes.back().second;
    }
    commit(rig, writes);
    CHECK(rig.log.tail() - rig.log.start() <= log_lines);
    Rig after(rig);
    REQUIRE(after.log.recover());
    for (std::size_t i = 0; i < 40; ++i)
      REQUIRE(after.word(i) == model[i]);
  }
}

TEST_CASE("a record that points out of the pool is damage, not a crash") {
  Rig rig;
  std::vector<std::byte> bytes = record({{0, 1}});
  const std::uint64_t word = RecordEntry::word(pool_bytes - 4, RecordEntry::Kind::write, 8);
  std::memcpy(bytes.data() + sizeof(RecordHead), &word, 8);
  RecordHead head{1, static_cast<std::uint32_t>(bytes.size()), 0};
  std::memcpy(bytes.data(), &head, sizeof head);
  head.crc = poolformat::record_crc(head, bytes.data() + sizeof head);
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(rig.memory.data() + log_at + 64, bytes.data(), bytes.size());
  Result<std::size_t> recovered = Rig(rig).log.recover();
  REQUIRE(!recovered);
  CHECK(recovered.error().code == Errc::bad_input);
}

TEST_CASE("a record that is too large changes nothing") {
  Rig rig;
  std::vector<std::byte> bytes(log_lines * 64 / 2 + 8);
  CHECK(rig.log.commit(bytes.data(), static_cast<std::uint32_t>(bytes.size()), nullptr)
            .error()
            .code == Errc::no_space);
  CHECK(rig.log.tail() == 1);
}

TEST_CASE("one fence a commit; a scrubbed log keeps nothing") {
  Rig rig;
  const auto before = storelog::counters();
  commit(rig, {{0, 0x5ec4e7}});
  CHECK((storelog::counters() - before).fences == 1);
  CHECK((storelog::counters() - before).lines == 1);
  rig.log.scrub();
  for (std::size_t i = 0; i < log_lines * 64; ++i)
    CHECK(rig.memory.data()[log_at + i] == std::byte{0});
  commit(rig, {{0, 5}});
  Rig after(rig);
  CHECK(*after.log.recover() == 1);
}
