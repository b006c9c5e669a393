#include "trace/collector.hpp"

#include <csignal>
#include <cstdlib>
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "os/process.hpp"
#include "test_support.hpp"
#include "trace/plugin/capture.hpp"
#include "trace/reader.hpp"
#include "trace/sampled.hpp"

using namespace nearfar;
using namespace nearfar::trace;

namespace {

constexpr std::uint64_t code = 0x401000;

/// A recorder and a collector in one process; the accesses are of this test's own memory.
class Recording {
public:
  explicit Recording(std::uint64_t most_records = 0)
      : ring_(make_ring()), file_(make_file()), core_(new_core()) {
    FilterPlan plan;
    plan.l2 = {16384, 8};
    plan.prefetch = false;
    plan.after = After::l2;
    Result<Filter> filter = Filter::create(plan);
    REQUIRE(filter);
    collector_.emplace(ring_.shared(), std::move(*filter), file_.fd(),
                       Header{64, After::l2, {{"recorder", "test"}}}, most_records);
    thread_ = std::thread([this] { collected_.emplace(collector_->run()); });
  }
  ~Recording() {
    core_->slot->life.unlock(); // a mutex of this thread that is unmapped stays in libc's list
    core_->close();
    std::free(core_);
  }

  Core& core() { return *core_; }
  ring::Shared& shared() { return ring_.shared(); }
  Clock& clock() { return core_->ticks; }
  template <bool store = false>
  void access(const void* at, std::uint64_t from = code) {
    ++core_->ticks.instructions;
    ++core_->ticks.accesses[store];
    core_->touch<store>(reinterpret_cast<std::uint64_t>(at), 8, from);
  }

  std::vector<Record> finish() {
    core_->tell_counts();
    collector_->end();
    thread_.join();
    REQUIRE(*collected_);
    collected = **collected_;
    Result<Reader> opened = Reader::open(path_.c_str());
    REQUIRE(opened);
    reader.emplace(std::move(*opened));
    std::vector<Record> all;
    for (auto part = reader->next(); !part.empty(); part = reader->next())
      all.insert(all.end(), part.begin(), part.end());
    CHECK(reader->complete());
    return all;
  }
  std::optional<Reader> reader;
  Collected collected;
  const std::string& path() const { return path_; }

private:
  RingFile make_ring() {
    Result<RingFile> ring = RingFile::create({16, 4});
    REQUIRE(ring);
    return std::move(*ring);
  }
  os::File make_file() {
    Result<os::File> file = os::create_new(path_.c_str());
    REQUIRE(file);
    return std::move(*file);
  }
  Core* new_core() {
    auto* core = static_cast<Core*>(std::calloc(1, sizeof(Core)));
    REQUIRE(core->open(ring_.shared()));
    core->clock = &core->ticks;
    core->take_slot(0);
    return core;
  }

  test::Folder folder_ = test::Folder::quick();
  std::string path_ = folder_.path("trace");
  RingFile ring_;
  os::File file_;
  Core* core_;
  std::optional<Collector> collector_;
  std::optional<Result<Collected>> collected_;
  std::thread thread_;
};

struct alignas(64) Node {
  Node* next;
  std::uint64_t index;
  char rest[48];
};

} // namespace

TEST_CASE("accesses become records, and are counted") {
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
    CHECK(records[i].code == code);
    CHECK(records[i].instructions == 2 * i + 1);
    CHECK(records[i].kind == Kind::load);
  }
  CHECK(records.back().kind == Kind::store);
  const Totals& totals = recording.reader->totals();
  CHECK(totals[Total::loads] == 2000);
  CHECK(totals[Total::stores] == 1);
  CHECK(totals[Total::l1_misses] == 1001);
  CHECK(totals[Total::l2_misses] == 1001);
}

TEST_CASE("what is stored to comes back as a write-back") {
  Recording recording;
  std::vector<Node> nodes(1000);
  for (Node& node : nodes)
    recording.access<true>(&node);
  const std::vector<Record> records = recording.finish();
  std::uint64_t written = 0;
  for (const Record& record : records)
    written += record.kind == Kind::write_back;
  CHECK(written == 1000 - 256); // what is in the second level stays there
  CHECK(recording.reader->totals()[Total::writebacks] == written);
}

TEST_CASE("a chase depends, a stream and random accesses do not") {
  constexpr std::size_t count = 4000;
  std::vector<Node> nodes(count);
  Random random(1);
  for (std::size_t i = 0; i < count; ++i) // next by a pointer, and by a number
    nodes[i].next = &nodes[nodes[i].index = (i * 1237 + 17) % count];
  const auto dependent = [](const std::vector<Record>& records) {
    std::size_t found = 0;
    for (const Record& record : records)
      found += record.depends == 1;
    return found;
  };
  SUBCASE("by pointers") {
    Recording recording;
    for (Node* at = &nodes[5]; recording.clock().instructions < count; at = at->next)
      recording.access(at);
    CHECK(dependent(recording.finish()) > count * 99 / 100);
  }
  SUBCASE("by numbers") {
    Recording recording;
    std::vector<std::uint64_t> next(8 * count);
    for (std::size_t i = 0; i < count; ++i)
      next[8 * i] = 8 * ((i * 1237 + 17) % count);
    for (std::size_t at = 40; recording.clock().instructions < count; at = next[at])
      recording.access(&next[at]);
    CHECK(dependent(recording.finish()) > count * 99 / 100);
  }
  SUBCASE("by numbers, a line each, all as far apart, by what can load its own next address") {
    Recording recording;
    std::vector<std::uint64_t> next(8 * count);
    for (std::size_t i = 0; i < count; ++i)
      next[8 * i] = (i + 1237) % count;
    for (std::size_t at = 5; recording.clock().instructions < count; at = next[8 * at])
      recording.access(&next[8 * at], code | Core::chases);
    CHECK(dependent(recording.finish()) > count * 99 / 100);
  }
  SUBCASE("by numbers, with lines in between that are not missed") {
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
    CHECK(dependent(recording.finish()) > missed * 6 / 10); // two of three follow one that was seen
  }
  SUBCASE("a stream, of numbers that are their own places") {
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

TEST_CASE("objects have a site, a size and a life") {
  Recording recording;
  std::vector<Node> memory(64);
  const auto address = reinterpret_cast<std::uint64_t>(memory.data());
  const std::uint64_t chain[] = {0x1234, 0x5678};
  Core& core = recording.core();
  core.tell_with(ring::What::site, 99, 2, 0, chain, 2);
  core.tell_four(ring::What::allocate, address, 640, 10, 99);
  recording.access(&memory[1]);
  core.tell(ring::What::free, address, 0, 20);
  core.tell_four(ring::What::allocate, address, 1280, 30, 99);
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

TEST_CASE("a long run is traced in windows, and what they stand for is counted") {
  constexpr std::uint64_t slots = 11, count = slots * block_records, most = 2 * block_records;
  Recording recording(most);
  std::vector<Node> nodes(count / 8); // gone through eight times, each the successor of the last
  for (std::size_t i = 0; i < nodes.size(); ++i)
    nodes[i].next = &nodes[(i + 1) % nodes.size()];
  recording.core().tell_four(ring::What::allocate, reinterpret_cast<std::uint64_t>(nodes.data()),
                             nodes.size() * sizeof(Node), 1, 0);
  Node* at = nodes.data();
  for (std::uint64_t i = 0; i < count; ++i, at = at->next)
    recording.access(at);
  const std::vector<Record> records = recording.finish();
  const Reader& reader = *recording.reader;
  // All until there are three slots, then every other one, then every fourth, then every eighth.
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
  for (const auto& [more, every] : {std::pair{most, 8u}, {100 * most, 4u}}) { // as the file has it
    Result<Sampled> sampled = Sampled::read(recording.path().c_str(), more);
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

TEST_CASE("stores past the caches drive a dirty line out, and are told once a line") {
  Recording recording;
  std::vector<Node> nodes(2);
  recording.access<true>(&nodes[0]);
  for (int i = 0; i < 8; ++i)
    recording.core().store_past(reinterpret_cast<std::uint64_t>(&nodes[0]) + 8u * unsigned(i),
                                code);
  const std::vector<Record> records = recording.finish();
  REQUIRE(records.size() == 3);
  CHECK(records[1].kind == Kind::write_back);
  CHECK(records[2].kind == Kind::nt_store);
}

namespace {

/// A child process that `acts` and is then killed; it is waited for.
template <class Act>
void in_killed_child(Act act) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    act();
    raise(SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
}

} // namespace

TEST_CASE("a producer killed between reserving and publishing does not stop the collector") {
  Recording recording;
  ring::Shared& shared = recording.shared();
  std::uint64_t lost = 0;
  SUBCASE("before its entry is there") {
    lost = 1;
    in_killed_child([&] {
      ring::Producer producer{};
      producer.shared = &shared;
      producer.take_slot();
      std::uint64_t position;
      producer.reserve(1, position);
    });
  }
  SUBCASE("when some of its entries are there") {
    lost = 3;
    in_killed_child([&] {
      ring::Producer producer{};
      producer.shared = &shared;
      const auto thread = static_cast<std::uint16_t>(producer.take_slot());
      std::uint64_t position;
      producer.reserve(3, position);
      producer.publish(position, ring::What::site, 2, thread, 1, 6, 0);
    });
  }
  alignas(64) static char lines[1 << 20];
  constexpr std::size_t rounds = 20; // more than the ring holds
  std::atomic<bool> done{false};
  std::thread program([&] {
    for (std::size_t at = 0; at < rounds * sizeof lines; at += 64)
      recording.access(&lines[at % sizeof lines]);
    done = true;
  });
  for (int waited = 0; waited < 60'000 && !done; ++waited)
    os::sleep_ms(1);
  CHECK(done);
  if (!done) shared.stop = 1;
  program.join();
  CHECK(recording.finish().size() == rounds * sizeof lines / 64);
  CHECK(recording.collected.lost_entries == lost);
}

TEST_CASE("a collector that was killed does not stop the program, waited for or not") {
  Result<RingFile> ring = RingFile::create({16, 4});
  REQUIRE(ring);
  ring::Shared& shared = ring->shared();
  const pid_t collector = fork();
  REQUIRE(collector >= 0);
  if (collector == 0) {
    shared.consumer = static_cast<std::uint32_t>(getpid());
    shared.collector.lock();
    shared.collecting = 1;
    raise(SIGKILL);
  }
  while (shared.collecting == 0 || shared.collector.is_held())
    os::sleep_ms(1);
  ring::Producer producer{};
  producer.shared = &shared;
  const auto thread = static_cast<std::uint16_t>(producer.take_slot());
  for (std::uint64_t i = 0; i <= shared.capacity; ++i)
    producer.push(ring::What::load, 0, thread, i, 0, 0);
  CHECK(shared.stop == 1);
  producer.slot().life.unlock(); // before it is unmapped
  REQUIRE(waitpid(collector, nullptr, 0) == collector);
}

TEST_CASE("a process that the program left behind does not keep the collector") {
  Recording recording;
  ring::Shared& shared = recording.shared();
  const pid_t left = fork();
  REQUIRE(left >= 0);
  if (left == 0) {
    ring::Producer producer{};
    producer.shared = &shared;
    const auto thread = static_cast<std::uint16_t>(producer.take_slot());
    for (std::uint64_t at = 0;; at += 64) // without end
      producer.push(ring::What::load, 0, thread, at, 0, 0);
  }
  while (shared.head < shared.capacity)
    os::sleep_ms(1);
  CHECK(recording.finish().size() > 1000);
  kill(left, SIGKILL);
  REQUIRE(waitpid(left, nullptr, 0) == left);
}

TEST_CASE("threads that share the last slot are recorded, and one that was killed is skipped") {
  Recording recording;
  ring::Shared& shared = recording.shared();
  shared.threads = ring::most_threads + 3;
  in_killed_child([&] {
    ring::Producer producer{};
    producer.shared = &shared;
    producer.take_slot();
    std::uint64_t position;
    producer.reserve(1, position);
  });
  std::vector<std::thread> late;
  for (int i = 0; i < 2; ++i)
    late.emplace_back([&shared] {
      ring::Producer producer{};
      producer.shared = &shared;
      const auto thread = static_cast<std::uint16_t>(producer.take_slot());
      for (std::uint64_t at = 0; at < 200'000; ++at)
        producer.push(ring::What::load, 0, thread, at << 6, code, at);
    });
  for (std::thread& each : late)
    each.join();
  CHECK(recording.finish().size() > 200'000);
  CHECK(recording.collected.lost_entries == 1);
  CHECK(recording.collected.lost_threads == 3);
}

TEST_CASE("a first level that cannot be recorded is refused") {
  CHECK(RingFile::create({48, 8}).error().code == Errc::bad_input);
  CHECK(RingFile::create({64, 0}).error().code == Errc::bad_input);
}

TEST_CASE("a ring is opened by its path, and its memory is that of whoever still has it") {
  Result<RingFile> ring = RingFile::create({16, 4});
  REQUIRE(ring);
  ring::Shared* attached = nullptr;
  {
    const RingFile held = std::move(*ring);
    attached = ring::attach(held.path().c_str());
    REQUIRE(attached != nullptr);
    CHECK(attached->l1_ways == 4);
    CHECK(attached->stop == 0);
  }
  CHECK(attached->stop == 1); // the consumer has gone: nothing more is recorded
  munmap(attached, ring::Shared::bytes(attached->capacity));
}
