#include <doctest/doctest.h>
#include <vector>

#include "base/random.hpp"
#include "trace/test_recording.hpp"
#include "trace/thinned_trace.hpp"

using namespace nearfar;
using namespace nearfar::trace;

namespace {

struct alignas(64) Node {
  Node* next;
  std::uint64_t index;
  char rest[48];
};

} // namespace

TEST_CASE("misses become records, and accesses are counted") {
  Recording recording;
  std::vector<Node> nodes(1000);
  for (const Node& node : nodes) {
    recording.access(&node);
    recording.access(&node.index);
  }
  recording.access<true>(&nodes[0]);
  const std::vector<Record> records = recording.finish();
  REQUIRE(records.size() == 1001);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    CHECK(records[i].line == reinterpret_cast<std::uint64_t>(&nodes[i]) / 64);
    CHECK(records[i].code == test_code);
    CHECK(records[i].instructions == 2 * i + 1);
    CHECK(records[i].kind == RecordKind::load);
  }
  CHECK(records.back().kind == RecordKind::store);
  const Totals& totals = recording.reader->totals();
  CHECK(totals[Total::loads] == 2000);
  CHECK(totals[Total::stores] == 1);
  CHECK(totals[Total::l1_misses] == 1001);
  CHECK(totals[Total::l2_misses] == 1001);
}

TEST_CASE("evicted dirty lines become write-back records") {
  Recording recording;
  std::vector<Node> nodes(1000);
  for (Node& node : nodes)
    recording.access<true>(&node);
  const std::vector<Record> records = recording.finish();
  std::uint64_t written = 0;
  for (const Record& record : records)
    written += record.kind == RecordKind::write_back;
  CHECK(written == 1000 - 256); // 256 lines stay in the second level
  CHECK(recording.reader->totals()[Total::writebacks] == written);
}

TEST_CASE("misses that are reported later become the same records, before what follows them") {
  constexpr std::size_t count = 1000; // not a multiple of a group
  std::vector<Node> nodes(count);
  for (std::size_t i = 0; i < count; ++i)
    nodes[i].next = &nodes[(i * 141 + 17) % count];
  const auto record = [&](bool defer) {
    Recording recording;
    recording.recorder().defer_misses(defer);
    Node* at = &nodes[5];
    for (std::size_t i = 0; i < count; ++i, at = at->next) {
      recording.access(at);
      if (i == count / 2) // all nodes become an object: earlier accesses are not to it
        recording.recorder().emit(ring::EventKind::map,
                                  reinterpret_cast<std::uint64_t>(nodes.data()),
                                  count * sizeof(Node));
    }
    recording.recorder().report_misses();
    return recording.finish();
  };
  const std::vector<Record> at_once = record(false);
  const std::vector<Record> later = record(true);
  REQUIRE(at_once.size() == count);
  REQUIRE(later.size() == count);
  for (std::size_t i = 0; i < count; ++i) {
    CAPTURE(i);
    CHECK(later[i].line == at_once[i].line);
    CHECK(later[i].instructions == at_once[i].instructions);
    CHECK(later[i].depends == at_once[i].depends);
    CHECK((later[i].object != 0) == (i > count / 2));
    CHECK((at_once[i].object != 0) == (i > count / 2));
  }
}

TEST_CASE("a pointer chase depends on loads, streams and random accesses do not") {
  constexpr std::size_t count = 4000;
  std::vector<Node> nodes(count);
  Random random(1);
  for (std::size_t i = 0; i < count; ++i) // the next one by pointer and by index
    nodes[i].next = &nodes[nodes[i].index = (i * 1237 + 17) % count];
  const auto dependent = [](const std::vector<Record>& records) {
    std::size_t found = 0;
    for (const Record& record : records)
      found += record.depends == 1;
    return found;
  };
  SUBCASE("by pointers") {
    Recording recording;
    for (Node* at = &nodes[5]; recording.counts().instructions < count; at = at->next)
      recording.access(at);
    CHECK(dependent(recording.finish()) > count * 99 / 100);
  }
  SUBCASE("by indices") {
    Recording recording;
    std::vector<std::uint64_t> next(8 * count);
    for (std::size_t i = 0; i < count; ++i)
      next[8 * i] = 8 * ((i * 1237 + 17) % count);
    for (std::size_t at = 40; recording.counts().instructions < count; at = next[at])
      recording.access(&next[at]);
    CHECK(dependent(recording.finish()) > count * 99 / 100);
  }
  SUBCASE("by indices at a constant stride, by an instruction that can load its own next address") {
    Recording recording;
    std::vector<std::uint64_t> next(8 * count);
    for (std::size_t i = 0; i < count; ++i)
      next[8 * i] = (i + 1237) % count;
    for (std::size_t at = 5; recording.counts().instructions < count; at = next[8 * at])
      recording.access(&next[8 * at], test_code | DependenceDetector::pointer_chase);
    CHECK(dependent(recording.finish()) > count * 99 / 100);
  }
  SUBCASE("by indices, with loads that hit in between") {
    Recording recording;
    std::vector<std::uint64_t> next(8 * count);
    for (std::size_t i = 0; i < count; ++i)
      next[8 * i] = (i * 1237 + 17) % count;
    std::size_t missed = 0;
    for (std::size_t at = 5, i = 0; i < count; at = next[8 * at], ++i)
      if (i % 4 != 3) {
        recording.access(&next[8 * at]);
        ++missed;
      }
    CHECK(dependent(recording.finish()) >
          missed * 6 / 10); // two of three follow a load that missed
  }
  SUBCASE("a stream whose elements are their own indices") {
    Recording recording;
    std::vector<std::uint64_t> own(8 * count);
    for (std::size_t i = 0; i < own.size(); ++i)
      own[i] = i;
    for (const std::uint64_t& number : own)
      recording.access(&number);
    CHECK(dependent(recording.finish()) < count / 100);
  }
  SUBCASE("random accesses") {
    Recording recording;
    std::vector<std::uint64_t> table(8 * count);
    for (std::uint64_t& word : table)
      word = random.below(table.size());
    for (std::size_t i = 0; i < count; ++i)
      recording.access(&table[random.below(table.size())]);
    CHECK(dependent(recording.finish()) < count / 50);
  }
}

TEST_CASE("objects have a site, a size and a lifetime") {
  Recording recording;
  std::vector<Node> memory(64);
  const auto address = reinterpret_cast<std::uint64_t>(memory.data());
  const std::uint64_t chain[] = {0x1234, 0x5678};
  ThreadRecorder& recorder = recording.recorder();
  recorder.events().emit_with_words(ring::EventKind::site, 99, 2, 0, chain, 2);
  recorder.events().emit_wide(ring::EventKind::allocate, 0, address, 640, 10, 99);
  recording.access(&memory[1]);
  recorder.events().emit(ring::EventKind::free, address, 0, 20);
  recorder.events().emit_wide(ring::EventKind::allocate, 0, address, 1280, 30, 99);
  recording.access(&memory[15]);
  recording.access(&memory[40]);
  const std::vector<Record> records = recording.finish();
  REQUIRE(records.size() == 3);
  const Tables& tables = recording.reader->tables();
  REQUIRE(tables.objects.size() == 3);
  CHECK(records[0].object == 1);
  CHECK(records[1].object == 2);
  CHECK(records[2].object == 0); // beyond the second
  CHECK((tables.objects[1] == Object{1, address, 640, 0, 10, 1, 20}));
  CHECK((tables.objects[2] == Object{1, address, 1280, 1, 30, alive, alive}));
  const Site& site = tables.sites[1];
  CHECK(site.kind == SiteKind::heap);
  CHECK(site.allocations == 2);
  CHECK(site.bytes == 640 + 1280);
  CHECK(site.peak_bytes == 1280);
  CHECK((site.frames == std::vector<Frame>{{-1, 0x1234}, {-1, 0x5678}}));
}

TEST_CASE("a long run is traced in windows, and left-out records are counted") {
  constexpr std::uint64_t slots = 11, count = slots * block_records, most = 2 * block_records;
  Recording recording(most);
  std::vector<Node> nodes(count / 8); // traversed eight times, each node linked to the next
  for (std::size_t i = 0; i < nodes.size(); ++i)
    nodes[i].next = &nodes[(i + 1) % nodes.size()];
  recording.recorder().events().emit_wide(ring::EventKind::allocate, 0,
                                          reinterpret_cast<std::uint64_t>(nodes.data()),
                                          nodes.size() * sizeof(Node), 1, 0);
  Node* at = nodes.data();
  for (std::uint64_t i = 0; i < count; ++i, at = at->next)
    recording.access(at);
  const std::vector<Record> records = recording.finish();
  const TraceReader& reader = *recording.reader;
  // All slots until there are three, then every second one, every fourth, every eighth.
  const std::vector<std::uint64_t> kept = {0, 1, 2, 4, 8};
  REQUIRE(records.size() == kept.size() * block_records);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::uint64_t number = kept[i / block_records] * block_records + i % block_records;
    REQUIRE(records[i].instructions == number + 1);
    REQUIRE(records[i].line == reinterpret_cast<std::uint64_t>(&nodes[number % nodes.size()]) / 64);
    if (i % block_records < 8) REQUIRE(records[i].depends <= i % block_records);
  }
  CHECK(reader.position() == count);
  CHECK(reader.totals()[Total::l2_misses] == count);
  CHECK(recording.collected.touched.small.count() >= count / 8 / 64);
  CHECK(recording.collected.touched.small.count() <= count / 8 / 64 + 1);
  for (const auto& [more, every] : {std::pair{most, 8u}, {100 * most, 4u}}) {
    Result<ThinnedTrace> sampled = ThinnedTrace::read(recording.path().c_str(), more);
    REQUIRE(sampled);
    CHECK(sampled->every() == every);
    REQUIRE(sampled->blocks().size() == 8 / every + 1);
    CHECK(sampled->blocks()[1].front().instructions == every * block_records + 1);
    CHECK(sampled->counts().all[0] == count);
  }
  CHECK(reader.tables().objects[1].born_record == 0);
}

TEST_CASE("an access over two lines counts once and may miss twice") {
  Recording recording;
  std::vector<Node> nodes(2);
  recording.access(reinterpret_cast<const char*>(&nodes[1]) - 4);
  CHECK(recording.finish().size() == 2);
  CHECK(recording.reader->totals()[Total::loads] == 1);
}

TEST_CASE("a non-temporal store evicts a dirty line, and is recorded once per line") {
  Recording recording;
  std::vector<Node> nodes(2);
  recording.access<true>(&nodes[0]);
  for (int i = 0; i < 8; ++i)
    recording.recorder().store_non_temporal(
        reinterpret_cast<std::uint64_t>(&nodes[0]) + 8u * unsigned(i), test_code);
  const std::vector<Record> records = recording.finish();
  REQUIRE(records.size() == 3);
  CHECK(records[1].kind == RecordKind::write_back);
  CHECK(records[2].kind == RecordKind::nt_store);
}
