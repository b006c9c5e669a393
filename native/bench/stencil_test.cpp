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
  parsed->pace = {1, 1, 1e12, 1e12, 0.5};
  return *parsed;
}

using Field = std::vector<double>;

/// A plain serial sweep of the seven-point stencil over planes of `width` columns.
Field reference_of_seven(std::size_t planes, std::size_t elements, std::size_t width,
                         std::size_t sweeps) {
  Field now(planes * elements);
  for (std::size_t i = 0; i < now.size(); ++i)
    now[i] = StencilBench::first_value(seed, i);
  for (std::size_t sweep = 0; sweep < sweeps; ++sweep) {
    Field next = now;
    for (std::size_t z = 1; z + 1 < planes; ++z)
      for (std::size_t y = 1; y + 1 < elements / width; ++y)
        for (std::size_t x = 1; x + 1 < width; ++x) {
          const std::size_t at = z * elements + y * width + x;
          next[at] =
              (((now[at - elements] + now[at + elements]) + (now[at - width] + now[at + width])) +
               ((now[at - 1] + now[at + 1]) + now[at])) *
              (1.0 / 7.0);
        }
    now = next;
  }
  return now;
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
        const auto column = [&](std::size_t k) { return (at(r - 1, k) + at(r + 1, k)) + at(r, k); };
        next[r * columns + c] =
            ((column(c - 1) + column(c + 1)) + (at(r - 1, c) + at(r + 1, c))) / 8.0;
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
      for (const std::string& far :
           {std::string("dram"), "file:" + folder.path(), std::string("paced:dram@x")})
        for (std::size_t far_rows = 0; far_rows <= size.rows; ++far_rows)
          for (const auto& team :
               {std::pair{1u, 1u}, {2u, 1u}, {1u, 3u}}) { // clang 14 cannot capture a binding
            const auto near = team.first;
            const auto away = team.second;
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

TEST_CASE("so do rows wide enough to go two at a time, and planes of the seven-point stencil") {
  constexpr std::size_t columns = 4096 + 11;
  const std::vector<double> wide = reference(9, columns, 3);
  const Field planes = reference_of_seven(7, 35, 5, 3);
  for (const StencilVersion version : {StencilVersion::direct, StencilVersion::ghost})
    for (std::size_t far_rows = 0; far_rows <= 9; ++far_rows) {
      CAPTURE(far_rows);
      Result<StencilBench> made = make({9, columns, far_rows, version}, "paced:dram@x", 2, 2);
      REQUIRE(bool(made));
      REQUIRE(bool(made->run(3)));
      CHECK(made->values() == wide);
      if (far_rows > 7) continue;
      Result<StencilBench> stack =
          make({7, 35, far_rows, version, bench::StencilKernel::seven, 5}, "dram", 1, 2);
      REQUIRE(bool(stack));
      REQUIRE(bool(stack->run(3)));
      CHECK(stack->values() == planes);
      REQUIRE(bool(stack->run_serially(3)));
      CHECK(stack->values() == planes);
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
  const bench::StencilKernel seven = bench::StencilKernel::seven;
  CHECK(refused({4, 10, 1, direct, seven, 4}, 1, 1) == Errc::bad_input);
  CHECK(refused({4, 10, 1, direct, seven, 0}, 1, 1) == Errc::bad_input);
  CHECK(refused({std::size_t{1} << 40, std::size_t{1} << 40, 1, direct}, 1, 1) == Errc::no_space);
  CHECK(folder.empty());
  CHECK(bool(make({10, 10, 10, direct}, file, 0, 1)));
  CHECK(bool(make({10, 10, 0, direct}, file, 1, 0)));
}
