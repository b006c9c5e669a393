#include "bench/mapped.hpp"

#include <array>
#include <doctest/doctest.h>
#include <fstream>
#include <string>

#include "os/block_io.hpp"
#include "test_support.hpp"

using namespace nearfar;
using bench::Access;
using bench::MappedBench;
using bench::Method;
using bench::Warmth;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t file_bytes = 2 * mib;
constexpr std::uint64_t plenty_ns = 10'000'000'000;

MappedBench bench_in(const test::Folder& folder) {
  Result<MappedBench> made =
      MappedBench::create(folder.path().c_str(), file_bytes, test::usable_cpu());
  REQUIRE(bool(made));
  return std::move(*made);
}

/// Runs once; false where this machine has not the method, which it must then say.
bool moves_whole_file(MappedBench& mapped, const Access& access) {
  Result<bench::IoSample> sample = mapped.run(access, plenty_ns);
  if (!sample) {
    CHECK(sample.error().code == Errc::unsupported);
    CHECK(std::string(sample.error().next) != "");
    return false;
  }
  CHECK(sample->bytes == file_bytes);
  CHECK(sample->seconds > 0);
  return true;
}

} // namespace

TEST_CASE("all methods, directions, orders and warmths move the whole file") {
  const test::Folder folder;
  MappedBench mapped = bench_in(folder);
  for (const Method method : {Method::mapped, Method::buffered, Method::direct, Method::uring})
    for (const Warmth warmth : {Warmth::cold, Warmth::warm, Warmth::resident})
      for (const bool write : {false, true})
        for (const bool random : {false, true}) {
          const bool works = moves_whole_file(mapped, {method, write, random, warmth, 65536, 3});
          if (!works) MESSAGE("skipped: method " << static_cast<int>(method));
          if (method == Method::mapped || method == Method::buffered) CHECK(works);
        }
  CHECK(folder.empty());
}

TEST_CASE("a mapped read of fresh pages faults, of resident pages does not") {
  const test::Folder folder;
  MappedBench mapped = bench_in(folder);
  Result<bench::IoSample> fresh =
      mapped.run({Method::mapped, false, true, Warmth::warm, 4096, 3}, plenty_ns);
  Result<bench::IoSample> resident =
      mapped.run({Method::mapped, false, true, Warmth::resident, 4096, 3}, plenty_ns);
  REQUIRE(bool(fresh));
  REQUIRE(bool(resident));
  CHECK(fresh->usage.minor_faults > resident->usage.minor_faults);
}

TEST_CASE("a budget ends the run between blocks") {
  const test::Folder folder;
  MappedBench mapped = bench_in(folder);
  Result<bench::IoSample> sample =
      mapped.run({Method::buffered, false, false, Warmth::warm, 4096, 1}, 1);
  REQUIRE(bool(sample));
  CHECK(sample->bytes == 16 * 4096);
}

TEST_CASE("a block that is not the one asked for is found out by every way of reading") {
  const test::Folder folder;
  MappedBench mapped = bench_in(folder);
  Result<bench::MappingFacts> facts = mapped.facts();
  REQUIRE(bool(facts));
  Result<os::File> file =
      os::open_existing(("/proc/self/fd/" + std::to_string(facts->descriptor)).c_str(), false);
  REQUIRE(bool(file));
  const std::array<std::byte, 8> wrong{};
  REQUIRE(bool(os::write_at(*file, wrong.data(), wrong.size(), 5 * 65536)));
  for (const Method method : {Method::mapped, Method::buffered, Method::direct, Method::uring}) {
    Result<bench::IoSample> sample =
        mapped.run({method, false, true, Warmth::warm, 65536, 1}, plenty_ns);
    REQUIRE(!sample);
    if (sample.error().code != Errc::unsupported) CHECK(sample.error().code == Errc::failed_check);
  }
}

TEST_CASE("the facts of the mapping are reported") {
  const test::Folder folder;
  MappedBench mapped = bench_in(folder);
  Result<bench::MappingFacts> facts = mapped.facts();
  REQUIRE(bool(facts));
  CHECK(facts->descriptor >= 0);
  CHECK(facts->last_address - facts->first_address == file_bytes - 1);
  CHECK(facts->page_bytes >= 4096);
  CHECK((facts->dax || !facts->map_sync));
}

TEST_CASE("sizes, paths and processors that cannot be used are refused") {
  const test::Folder folder;
  const int cpu = test::usable_cpu();
  std::ofstream(folder.path("there")) << "x";
  const auto refused = [&](const std::string& path, std::size_t bytes) {
    Result<MappedBench> made = MappedBench::create(path.c_str(), bytes, cpu);
    REQUIRE(!made);
    CHECK(std::string(made.error().next) != "");
    return made.error().code;
  };
  CHECK(refused(folder.path(), 0) == Errc::bad_input);
  CHECK(refused(folder.path(), mib + 4096) == Errc::bad_input);
  CHECK(refused(folder.path(), std::size_t{1} << 60) == Errc::no_space);
  CHECK(refused(folder.path("no/such"), mib) == Errc::not_found);
  CHECK(refused(folder.path("there"), mib) == Errc::exists);
  Result<MappedBench> elsewhere =
      MappedBench::create(folder.path().c_str(), mib, test::missing_cpu);
  REQUIRE(bool(elsewhere));
  Result<bench::IoSample> sample = elsewhere->run({}, plenty_ns);
  REQUIRE(!sample);
  CHECK(sample.error().code == Errc::bad_input);
}

TEST_CASE("blocks that cannot be used are refused") {
  const test::Folder folder;
  MappedBench mapped = bench_in(folder);
  for (const std::size_t block :
       {std::size_t{0}, std::size_t{1000}, 3 * std::size_t{4096}, 2 * mib}) {
    Access access;
    access.block_bytes = block;
    Result<bench::IoSample> sample = mapped.run(access, plenty_ns);
    REQUIRE(!sample);
    CHECK(sample.error().code == Errc::bad_input);
  }
}
