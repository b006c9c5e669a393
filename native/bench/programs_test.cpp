#include "bench/programs.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <unistd.h>

#include "bench/program_kernels.hpp"
#include "trace/reader.hpp"

using namespace nearfar;
using namespace nearfar::bench;

namespace {

constexpr ProgramWork works[] = {{Program::quick, 5000, 1, 7},
                                 {Program::merge, 5000, 1, 7},
                                 {Program::lbm, 16, 10, 7},
                                 {Program::matmul, 40, 1, 7}};

std::string fresh_path() {
  std::string path = "/tmp/nearfar-program-XXXXXX";
  const int fd = mkstemp(path.data());
  REQUIRE(fd >= 0);
  close(fd);
  unlink(path.c_str());
  return path;
}

} // namespace

TEST_CASE("programs prove their results, and repeat them") {
  for (const ProgramWork& work : works) {
    Result<ProgramRun> first = run_program(work, Malloc{});
    REQUIRE_MESSAGE(first, first.error().what);
    Result<ProgramRun> again = run_program(work, Malloc{});
    REQUIRE(again);
    CHECK(first->checksum == again->checksum);
    ProgramWork other = work;
    other.seed = 8;
    Result<ProgramRun> seeded = run_program(other, Malloc{});
    REQUIRE(seeded);
    CHECK((seeded->checksum == first->checksum) == (work.program == Program::lbm));
  }
}

TEST_CASE("sorts sort whatever comes") {
  NoRecorder no_recorder;
  for (std::size_t n = 1; n < 60; ++n)
    for (unsigned pattern = 0; pattern < 4; ++pattern) {
      std::vector<std::int32_t> data(n), buffer(n);
      for (std::size_t i = 0; i < n; ++i) {
        const auto number = static_cast<std::int32_t>(i);
        data[i] = pattern == 0 ? number : pattern == 1 ? -number : pattern == 2 ? number % 3 : 5;
      }
      std::vector<std::int32_t> other = data;
      const View<std::int32_t, NoRecorder> a(data.data(), 0, no_recorder),
          b(other.data(), 0, no_recorder), c(buffer.data(), 0, no_recorder);
      quicksort(a, 0, n);
      mergesort(b, c, 0, n);
      CHECK(std::is_sorted(data.begin(), data.end()));
      CHECK(data == other);
    }
}

TEST_CASE("the equilibrium has its density and momentum") {
  const std::array<double, 3> u = {0.03, -0.02, 0.05};
  double density = 0;
  std::array<double, 3> momentum{};
  for (std::size_t q = 0; q < D3Q19::directions; ++q) {
    const double part = equilibrium(q, 1.5, u);
    density += part;
    for (std::size_t axis = 0; axis < 3; ++axis)
      momentum[axis] += part * D3Q19::velocity[q][axis];
  }
  CHECK(density == doctest::Approx(1.5));
  for (std::size_t axis = 0; axis < 3; ++axis)
    CHECK(momentum[axis] == doctest::Approx(1.5 * u[axis]));
}

TEST_CASE("a recorded program computes the same, and its trace is whole") {
  for (const ProgramWork& work : works) {
    const std::string path = fresh_path();
    Result<std::uint64_t> recorded = record_program(work, {{4096, 4}}, path.c_str());
    REQUIRE_MESSAGE(recorded, recorded.error().what);
    CHECK(*recorded == run_program(work, Malloc{})->checksum);
    Result<trace::TraceReader> reader = trace::TraceReader::open(path.c_str());
    REQUIRE(reader);
    std::size_t written = 0;
    bool known = true;
    for (auto records = reader->next(); !records.empty(); records = reader->next())
      for (const trace::Record& record : records) {
        written += trace::writes(record.kind);
        known &= record.object > 0 && record.object < reader->tables().objects.size();
      }
    CHECK(reader->complete());
    CHECK(known);
    CHECK(written == reader->totals()[trace::Total::writebacks]);
    CHECK(reader->records() >= program_bytes(work) / 64);
    unlink(path.c_str());
  }
}

TEST_CASE("a smaller cache misses more") {
  std::uint64_t records[2];
  unsigned at = 0;
  for (const std::uint64_t bytes : {4096u, 65536u}) {
    const std::string path = fresh_path();
    REQUIRE(record_program(works[0], {{bytes, 4}}, path.c_str()));
    Result<trace::TraceReader> reader = trace::TraceReader::open(path.c_str());
    REQUIRE(reader);
    while (!reader->next().empty()) {
    }
    records[at++] = reader->records();
    unlink(path.c_str());
  }
  CHECK(records[1] <= 5000 * 4 / 64 + 2); // all of it fits: each line once
  CHECK(records[0] > 3 * records[1]);
}

TEST_CASE("sizes that make no sense are refused") {
  CHECK(run_program({Program::lbm, 8, 1, 1}, Malloc{}).error().code == Errc::bad_input);
  CHECK(run_program({Program::quick, 0, 1, 1}, Malloc{}).error().code == Errc::bad_input);
  CHECK(run_program({Program::matmul, std::size_t{1} << 40, 1, 1}, Malloc{}).error().code ==
        Errc::bad_input);
}
