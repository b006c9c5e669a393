#include "storelog/recorder.hpp"

#include <doctest/doctest.h>
#include <string_view>
#include <thread>

#include "test_support.hpp"

using namespace nearfar::storelog;

namespace {

struct alignas(64) Pool {
  std::uint64_t words[64] = {};
};

// A helper as persist has them: its caller's line must be the one that is kept.
void persist(const void* at, std::size_t bytes, Site site = Site::current()) {
  flush(at, bytes, site);
  fence(site);
}

} // namespace

TEST_CASE("fences and lines are counted without a recorder") {
  Pool pool;
  const Counters before = counters();
  flush(&pool.words[0], 8);
  flush(&pool.words[7], 16); // two lines
  nt_store(&pool.words[8], 128);
  flush(&pool.words[0], 0);
  fence();
  fence();
  const Counters did = counters() - before;
  CHECK(did.fences == 2);
  CHECK(did.lines == 5);
  CHECK(log(&pool.words[0], 8));
}

TEST_CASE("counters are those of the thread") {
  const Counters before = counters();
  std::thread([] {
    fence();
    CHECK(counters().fences == 1);
  }).join();
  CHECK((counters() - before).fences == 0);
}

TEST_CASE("a recorder keeps bytes, address, thread and the caller's line") {
  Pool pool;
  pool.words[3] = 7;
  Recorder recorder(&pool, sizeof pool);
  unsigned line = 0;
  {
    const Attached attached(&recorder);
    begin(42);
    pool.words[3] = 0x1122334455667788;
    store(&pool.words[3], 8);
    line = __LINE__ + 1;
    persist(&pool.words[3], 8);
    end(42);
    std::thread([&] {
      const Attached other(&recorder);
      pool.words[9] = 1;
      nt_store(&pool.words[9], 8);
    }).join();
  }
  fence(); // the recorder is detached

  const Log& log = recorder.log();
  REQUIRE(log.events.size() == 6);
  CHECK(static_cast<int>(log.image[24]) == 7);
  CHECK(log.events[0].kind == EventKind::begin);
  CHECK(log.events[0].address == 42);
  CHECK(log.events[1].kind == EventKind::store);
  CHECK(log.events[1].address == 24);
  CHECK(log.events[1].bytes == 8);
  CHECK(static_cast<int>(log.data[log.events[1].data]) == 0x88);
  CHECK(log.events[2].kind == EventKind::flush);
  CHECK(log.events[2].site.line() == line);
  CHECK(std::string_view(log.events[2].site.file()).ends_with("recorder_test.cpp"));
  CHECK(log.events[3].kind == EventKind::fence);
  CHECK(log.events[3].site.line() == line);
  CHECK(log.events[5].kind == EventKind::nt_store);
  CHECK(log.events[5].address == 72);
  CHECK(log.events[5].thread == 1);
}

TEST_CASE("what lies outside the pool is left out, what sticks out is cut") {
  Pool pool;
  Recorder recorder(&pool.words[8], 64);
  const Attached attached(&recorder);
  store(&pool.words[0], 64);
  store(&pool.words[7], 16);
  flush(&pool.words[15], 64);
  const Log& log = recorder.log();
  REQUIRE(log.events.size() == 2);
  CHECK(log.events[0].address == 0);
  CHECK(log.events[0].bytes == 8);
  CHECK(log.events[1].address == 56);
  CHECK(log.events[1].bytes == 8);
}

TEST_CASE("a suppressed call is neither kept nor made, others of its line are") {
  Pool pool;
  Recorder recorder(&pool, sizeof pool);
  const Attached attached(&recorder);
  const auto log_and_flush = [&](Site site = Site::current()) {
    const bool must = log(&pool.words[0], 8, site);
    flush(&pool.words[0], 8, site);
    return must;
  };
  const Site here(__FILE__, 1000);
  CHECK(log_and_flush(here));
  recorder.suppress(Suppressed{EventKind::log, here});
  CHECK(!log_and_flush(here));
  CHECK(log_and_flush(Site(__FILE__, 1001)));
  REQUIRE(recorder.log().events.size() == 5);
  recorder.restart();
  CHECK(recorder.log().events.empty());
}

TEST_CASE("a code address is distinguished from a line") {
  constexpr Site code = Site::code("/bin/true", 0x1234);
  CHECK(code.is_code());
  CHECK(code.offset() == 0x1234);
  CHECK(code.line() == 0);
  CHECK(!Site::current().is_code());
}
