// Threads and processes that end while the ring is in use.
#include <csignal>
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <thread>
#include <vector>

#include "os/process.hpp"
#include "trace/test_recording.hpp"

using namespace nearfar;
using namespace nearfar::trace;

namespace {

/// Calls act() in a child process, which is then killed, and waits for it.
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
  SUBCASE("before it has published an event") {
    lost = 1;
    in_killed_child([&] {
      ring::Producer producer{};
      producer.shared = &shared;
      producer.take_slot();
      std::uint64_t position;
      producer.reserve(1, position);
    });
  }
  SUBCASE("after it has published some events") {
    lost = 3;
    in_killed_child([&] {
      ring::Producer producer{};
      producer.shared = &shared;
      const auto thread = static_cast<std::uint16_t>(producer.take_slot());
      std::uint64_t position;
      producer.reserve(3, position);
      producer.publish(position, ring::EventKind::site, 2, thread, 1, 6, 0);
    });
  }
  alignas(64) static char lines[1 << 20];
  constexpr std::size_t rounds = 20; // more than the capacity of the ring
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
  CHECK(recording.collected.lost_events == lost);
}

TEST_CASE("a killed collector does not stop the program, whether or not a process has reaped it") {
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
    producer.push(ring::EventKind::load, 0, thread, i, 0, 0);
  CHECK(shared.stop == 1);
  producer.slot().life.unlock(); // before the ring is unmapped
  REQUIRE(waitpid(collector, nullptr, 0) == collector);
}

TEST_CASE("a process that outlives the program does not block the collector") {
  Recording recording;
  ring::Shared& shared = recording.shared();
  const pid_t left = fork();
  REQUIRE(left >= 0);
  if (left == 0) {
    ring::Producer producer{};
    producer.shared = &shared;
    const auto thread = static_cast<std::uint16_t>(producer.take_slot());
    for (std::uint64_t at = 0;; at += 64) // for ever
      producer.push(ring::EventKind::load, 0, thread, at, 0, 0);
  }
  while (shared.head < shared.capacity)
    os::sleep_ms(1);
  CHECK(recording.finish().size() > 1000);
  kill(left, SIGKILL);
  REQUIRE(waitpid(left, nullptr, 0) == left);
}

TEST_CASE("threads that share the last slot are recorded, and a killed one is skipped") {
  Recording recording;
  ring::Shared& shared = recording.shared();
  shared.threads = ring::max_threads + 3;
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
        producer.push(ring::EventKind::load, 0, thread, at << 6, test_code, at);
    });
  for (std::thread& each : late)
    each.join();
  CHECK(recording.finish().size() > 200'000);
  CHECK(recording.collected.lost_events == 1);
  CHECK(recording.collected.lost_threads == 3);
}

TEST_CASE("an invalid first level is refused") {
  CHECK(RingFile::create({48, 8}).error().code == Errc::bad_input);
  CHECK(RingFile::create({64, 0}).error().code == Errc::bad_input);
}

TEST_CASE("a ring is opened by its path, and stays mapped after its creator has closed it") {
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
  CHECK(attached->stop == 1); // no collector: no more is recorded
  munmap(attached, ring::Shared::bytes(attached->capacity));
}
