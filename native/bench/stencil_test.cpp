#include "bench/stencil.hpp"

#include <doctest/doctest.h>
#include <string>

#include "test_support.hpp"

using namespace nearfar;
using bench::StencilBench;
using bench::StencilShape;
using bench::StencilVersion;

namespace {

constexpr std::uint64_t seed = 42;

tier::Spec spec(const std::string& text) {
  Result<tier::Spec> parsed = tier::parse(text.c_str());
  REQUIRE(bool(parsed));
  return *parsed;
}

/// A plain serial sweep over two contiguous arrays: what all versions are compared with.
std::vector<double> reference(std::size_t rows, std::size_t columns, std::size_t sweeps) {
  std::vector<double> now(rows * columns);
  for (std::size_t i = 0; i < now.size(); ++i)
    now[i] = StencilBench::first_value(seed, i);
  for (std::size_t sweep = 0; sweep < sweeps; ++sweep) {
    std::vector<double> next = now;
    for (std::size_t r = 1; r + 1 < rows; ++r)
      for (std::size_t c = 1; c + 1 < columns; ++c) {
        const auto at = [&](std::size_t row, std::size_t column) {
          return now[row * columns + column];
        };
        next[r * columns + c] = (((at(r - 1, c - 1) + at(r - 1, c)) + at(r - 1, c + 1)) +
                                 (at(r, c - 1) + at(r, c + 1)) +
                                 ((at(r + 1, c - 1) + at(r + 1, c)) + at(r + 1, c + 1))) /
                                8.0;
      }
    now = next;
  }
  return now;
}

Result<StencilBench> make(const StencilShape& shape, const std::string& far, std::size_t near_count,
                          std::size_t far_count) {
  const int cpu = test::usable_cpu();
  return StencilBench::create(shape, spec("dram"), spec(far), std::vector<int>(near_count, cpu),
                              std::vector<int>(far_count, cpu), seed);
}

} // namespace

TEST_CASE("every version, split, tier and team leaves the bits of a plain serial sweep") {
  const test::Folder folder;
  struct Size {
    std::size_t rows, columns;
  };
  for (const Size size : {Size{13, 37}, {1, 5}, {2, 2}, {3, 3}, {7, 1}, {8, 129}}) {
    const std::vector<double> expected = reference(size.rows, size.columns, 5);
    for (const StencilVersion version : {StencilVersion::direct, StencilVersion::ghost})
      for (const std::string& far : {std::string("dram"), "file:" + folder.path()})
        for (std::size_t far_rows = 0; far_rows <= size.rows; ++far_rows)
          for (const auto& [near, away] : {std::pair{1u, 1u}, {2u, 1u}, {1u, 3u}}) {
            CAPTURE(size.rows);
            CAPTURE(size.columns);
            CAPTURE(far_rows);
            CAPTURE(near);
            CAPTURE(away);
            Result<StencilBench> made =
                make({size.rows, size.columns, far_rows, version}, far, near, away);
            REQUIRE(bool(made));
            Result<bench::StencilRun> run = made->run(5);
            REQUIRE(bool(run));
            CHECK(made->values() == expected);
            CHECK(run->sweeps.size() == 5);
            for (const bench::SweepTimes& times : run->sweeps)
              CHECK(times.total_ns >= std::max(times.near_ns, times.far_ns));
          }
  }
}

TEST_CASE("running again starts anew, and the serial run has the same checksum") {
  Result<StencilBench> made = make({11, 9, 4, StencilVersion::ghost}, "dram", 2, 2);
  REQUIRE(bool(made));
  REQUIRE(bool(made->run(4)));
  const std::uint64_t sum = made->checksum();
  REQUIRE(bool(made->run(5)));
  CHECK(made->checksum() != sum);
  REQUIRE(bool(made->run_serially(4)));
  CHECK(made->checksum() == sum);
  CHECK(made->values() == reference(11, 9, 4));
}

TEST_CASE("what makes no sense is refused, nothing is left") {
  const test::Folder folder;
  const std::string file = "file:" + folder.path();
  const StencilVersion direct = StencilVersion::direct;
  const auto refused = [&](const StencilShape& shape, std::size_t near, std::size_t far) {
    Result<StencilBench> made = make(shape, file, near, far);
    REQUIRE(!made);
    CHECK(std::string(made.error().next) != "");
    return made.error().code;
  };
  CHECK(refused({10, 10, 11, direct}, 1, 1) == Errc::bad_input);
  CHECK(refused({10, 10, 1, direct}, 1, 0) == Errc::bad_input);
  CHECK(refused({10, 10, 9, direct}, 0, 1) == Errc::bad_input);
  CHECK(refused({0, 10, 0, direct}, 1, 1) == Errc::bad_input);
  CHECK(refused({std::size_t{1} << 40, std::size_t{1} << 40, 1, direct}, 1, 1) == Errc::no_space);
  CHECK(folder.empty());
  CHECK(bool(make({10, 10, 10, direct}, file, 0, 1)));
  CHECK(bool(make({10, 10, 0, direct}, file, 1, 0)));
}
