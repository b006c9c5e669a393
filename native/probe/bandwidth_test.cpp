#include "probe/bandwidth.hpp"

#include <doctest/doctest.h>
#include <string>

#include "os/block_io.hpp"
#include "probe/tampering.hpp"
#include "test_support.hpp"

using namespace nearfar;
using probe::ArrayBench;

namespace {

constexpr std::size_t elements = 10'007; // no multiple of a line: the last slice has a tail

std::array<tier::Spec, 3> specs(const std::string& a, const std::string& others = "dram") {
  std::array<tier::Spec, 3> made;
  for (std::size_t i = 0; i < made.size(); ++i) {
    Result<tier::Spec> spec = tier::parse((i == 0 ? a : others).c_str());
    REQUIRE(bool(spec));
    made[i] = *spec;
  }
  return made;
}

ArrayBench bench_on(const std::string& a, std::span<const int> cpus) {
  Result<ArrayBench> made = ArrayBench::create(specs(a), elements, cpus);
  REQUIRE(bool(made));
  return std::move(*made);
}

} // namespace

TEST_CASE("rounds of all kernels leave what the closed form says, for any team") {
  for (const std::size_t threads : {1u, 2u, 3u}) {
    const std::vector<int> cpus(threads, test::usable_cpu());
    ArrayBench bench = bench_on("dram", cpus);
    for (int round = 0; round < 5; ++round)
      for (const kernels::ArrayKernel& kernel : kernels::array_kernels()) {
        CAPTURE(kernel.name);
        Result<probe::ArrayRepeat> repeat = bench.repeat(kernel.name, cpus);
        REQUIRE(bool(repeat));
        CHECK(repeat->seconds > 0);
        CHECK(repeat->counted_bytes == elements * (kernel.loaded_bytes + kernel.stored_bytes));
        CHECK(repeat->members.size() == threads);
        CHECK(bench.worst_error() < 1e-12);
      }
    REQUIRE(bool(bench.reset(cpus)));
    CHECK(bench.worst_error() == 0);
  }
}

TEST_CASE("an element that changed is found out by the sum and by validation") {
  const test::Folder folder;
  const std::vector<int> cpus = {test::usable_cpu()};
  ArrayBench bench = bench_on("file:" + folder.path(), cpus);
  const os::File file = probe::reopen_unnamed_in(folder.path());
  REQUIRE(bool(bench.repeat("read", cpus)));
  const double wrong = 1.0000001;
  REQUIRE(bool(os::write_at(file, reinterpret_cast<const std::byte*>(&wrong), sizeof wrong,
                            (elements - 1) * sizeof wrong)));
  Result<probe::ArrayRepeat> repeat = bench.repeat("read", cpus);
  REQUIRE(!repeat);
  CHECK(repeat.error().code == Errc::failed_check);
  CHECK(bench.worst_error() > 0.9e-7);
}

TEST_CASE("unknown kernels and processors are refused") {
  const std::vector<int> cpus = {test::usable_cpu()};
  const std::vector<int> missing = {test::missing_cpu};
  ArrayBench bench = bench_on("dram", cpus);
  Result<probe::ArrayRepeat> unknown = bench.repeat("fly", cpus);
  REQUIRE(!unknown);
  CHECK(unknown.error().code == Errc::bad_input);
  Result<probe::ArrayRepeat> nowhere = bench.repeat("read", missing);
  REQUIRE(!nowhere);
  CHECK(nowhere.error().code == Errc::bad_input);
  CHECK(!ArrayBench::create(specs("dram"), elements, missing));
}

TEST_CASE("three arrays that do not fit together are refused, nothing is left") {
  const test::Folder folder;
  const std::vector<int> cpus = {test::usable_cpu()};
  Result<ArrayBench> made =
      ArrayBench::create(specs("file:" + folder.path()), std::size_t{1} << 55, cpus);
  REQUIRE(!made);
  CHECK(made.error().code == Errc::no_space);
  CHECK(folder.empty());
}
