#include "bench/malloc.hpp"

#include <doctest/doctest.h>
#include <vector>

#include "test_support.hpp"

using namespace nearfar;
using bench::MallocTest;

namespace {

Result<bench::MallocRun> run(MallocTest test, std::size_t count, std::size_t threads) {
  const std::vector<int> cpus(threads, test::usable_cpu());
  return bench::run_malloc_test(bench::Malloc{}, {test, count, 7, 0}, cpus);
}

int living = 0;
std::size_t handed_out = 0;

/// Counts blocks, of which a test touches the first byte alone; from the 500th on it has none where
/// it is set to fail.
struct Counting {
  static void* take(void* failing, std::size_t) {
    static unsigned char bytes[1 << 15];
    if (failing != nullptr && handed_out == 500) return nullptr;
    REQUIRE(handed_out < sizeof bytes);
    ++living;
    return bytes + handed_out++;
  }
  static void give(void*, void*) { --living; }
  static bench::Allocator allocator(bool failing) {
    living = 0;
    handed_out = 0;
    return bench::Memkind{take, give, failing ? &living : nullptr};
  }
};

} // namespace

TEST_CASE("each test allocates and frees as many blocks as it says") {
  const int cpu = test::usable_cpu();
  const struct {
    MallocTest test;
    std::size_t count;
    std::size_t pairs;
    std::size_t made;
  } cases[] = {
      {MallocTest::small, 5000, 5000, 5000},
      {MallocTest::large, 300, 300, 300},
      {MallocTest::free_loop, 100, 1000, 1000},
      {MallocTest::half_free_loop, 101, 1010, 1010},
      {MallocTest::warm, 20000, 20000, 20000 + 2 * 4096}, // filled, then once round untimed
  };
  for (const auto& c : cases) {
    CAPTURE(bench::malloc_tests[static_cast<unsigned>(c.test)]);
    Result<bench::MallocRun> done =
        bench::run_malloc_test(Counting::allocator(false), {c.test, c.count, 3, 0}, {&cpu, 1});
    REQUIRE(bool(done));
    CHECK(done->pairs == c.pairs);
    CHECK(handed_out == c.made);
    CHECK(living == 0);
    CHECK(done->wall_seconds > 0);
    CHECK(done->cpu_seconds > 0);
  }
}

TEST_CASE("the work is split over threads, more than there are blocks too") {
  for (const std::size_t threads : {2U, 3U, 7U}) {
    Result<bench::MallocRun> done = run(MallocTest::small, 5, threads);
    REQUIRE(bool(done));
    CHECK(done->pairs == 5);
  }
}

TEST_CASE("touched pages count as peak memory") {
  Result<bench::MallocRun> done = run(MallocTest::large, 2000, 1);
  REQUIRE(bool(done));
  CHECK(done->peak_bytes >= 2000 * 4096 * 9 / 10);
  CHECK(done->settled_bytes <= done->peak_bytes + (std::size_t{1} << 20));
}

TEST_CASE("an allocator without memory is an error") {
  const int cpu = test::usable_cpu();
  for (const auto test : {MallocTest::small, MallocTest::half_free_loop, MallocTest::warm}) {
    Result<bench::MallocRun> done =
        bench::run_malloc_test(Counting::allocator(true), {test, 1000, 3, 0}, {&cpu, 1});
    REQUIRE(!done);
    CHECK(done.error().code == Errc::no_space);
  }
}

TEST_CASE("blocks that overlap are found") {
  static char page[4096];
  const int cpu = test::usable_cpu();
  const bench::Memkind broken{[](void*, std::size_t) -> void* { return page; }, [](void*, void*) {},
                              nullptr};
  Result<bench::MallocRun> done =
      bench::run_malloc_test(broken, {MallocTest::small, 1000, 3, 0}, {&cpu, 1});
  REQUIRE(!done);
  CHECK(done.error().code == Errc::failed_check);
}

TEST_CASE("an allocator that is not there is refused by name") {
  CHECK(bench::find_allocator("mimalloc").error().code == Errc::not_found);
  CHECK(bench::find_allocator("memkind:default").error().code == Errc::not_found);
  CHECK(bench::find_allocator("hmalloc:near").error().code == Errc::not_found);
  CHECK(bench::find_allocator("ptmalloc").error().code == Errc::bad_input);
}
