#include "bench/stencil.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "base/random.hpp"
#include "kernels/barrier.hpp"
#include "kernels/stencil.hpp"
#include "os/clock.hpp"

namespace nearfar::bench {

namespace {

double* doubles(const tier::Mapping& mapping) { return reinterpret_cast<double*>(mapping.data()); }

Status map_both(std::array<tier::Mapping, 2>& arrays, const tier::Spec& spec, std::size_t rows,
                std::size_t columns) {
  if (rows == 0) return Done{};
  if (rows > SIZE_MAX / sizeof(double) / columns)
    return Error::make(Errc::no_space, "an array of so many elements has no address")
        .try_next("use fewer --rows or --cols");
  for (tier::Mapping& array : arrays) {
    Result<tier::Mapping> mapping = tier::map_to_pace(spec, rows * columns * sizeof(double));
    if (!mapping) return mapping.error();
    array = std::move(*mapping);
  }
  return Done{};
}

Status verify(const std::array<tier::Mapping, 2>& arrays, const tier::Spec& spec) {
  for (const tier::Mapping& array : arrays)
    if (array.data() != nullptr)
      if (Status pages = tier::verify_pages(spec, array); !pages) return pages.error();
  return Done{};
}

/// The maximum over several threads.
void raise_to(std::atomic<std::uint64_t>& most, std::uint64_t value) {
  std::uint64_t seen = most.load(std::memory_order_relaxed);
  while (seen < value && !most.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

Status check_shape(const StencilShape& shape, std::size_t near_threads, std::size_t far_threads) {
  if (shape.rows == 0 || shape.columns == 0)
    return Error::make(Errc::bad_input, "an array without elements has nothing to sweep")
        .try_next("give --rows and --cols of at least 1");
  if (shape.far_rows > shape.rows)
    return Error::make(Errc::bad_input, "%zu far rows of an array of %zu", shape.far_rows,
                       shape.rows)
        .try_next("give --far-rows of at most %zu", shape.rows);
  if (far_threads == 0 && shape.far_rows > 0)
    return Error::make(Errc::bad_input, "far rows, and no far thread to work on them")
        .try_next("give --far-threads, or --far-rows 0");
  if (near_threads == 0 && shape.far_rows < shape.rows)
    return Error::make(Errc::bad_input, "near rows, and no near thread to work on them")
        .try_next("give --near-threads, or --far-rows %zu", shape.rows);
  const bool planes = shape.kernel == StencilKernel::seven;
  if (planes && (shape.width == 0 || shape.columns % shape.width != 0))
    return Error::make(Errc::bad_input,
                       "a plane of %zu elements does not consist of whole rows of %zu",
                       shape.columns, shape.width)
        .try_next("give planes of whole rows");
  return Done{};
}

} // namespace

Result<StencilBench> StencilBench::create(const StencilShape& shape, const tier::Spec& near,
                                          const tier::Spec& far, std::span<const int> near_cpus,
                                          std::span<const int> far_cpus, std::uint64_t seed) {
  if (Status sound = check_shape(shape, near_cpus.size(), far_cpus.size()); !sound)
    return sound.error();
  StencilBench bench(shape, seed);
  bench.near_threads_ = near_cpus.size();
  bench.cpus_.assign(near_cpus.begin(), near_cpus.end());
  bench.cpus_.insert(bench.cpus_.end(), far_cpus.begin(), far_cpus.end());
  bench.near_device_ = bench.devices_.of(near);
  bench.far_device_ = bench.devices_.of(far);
  const auto stored = [&](std::size_t rows) { return rows == 0 ? 0 : rows + bench.ghosts(); };
  if (Status s = map_both(bench.near_, near, stored(bench.near_rows()), shape.columns); !s)
    return s.error();
  if (Status s = map_both(bench.far_, far, stored(shape.far_rows), shape.columns); !s)
    return s.error();
  Result<kernels::TeamRun> touched =
      kernels::run_team(bench.cpus_, [&](std::size_t member) { bench.fill(member); });
  if (!touched) return touched.error();
  if (Status s = verify(bench.near_, near); !s) return s.error();
  if (Status s = verify(bench.far_, far); !s) return s.error();
  return bench;
}

StencilBench::Share StencilBench::share(std::size_t member) const {
  const bool far = member >= near_threads_;
  const std::size_t index = far ? member - near_threads_ : member;
  const std::size_t parts = far ? cpus_.size() - near_threads_ : near_threads_;
  const std::size_t begin = far ? near_rows() : 0;
  const std::size_t count = far ? shape_.far_rows : near_rows();
  return {begin + count * index / parts, begin + count * (index + 1) / parts};
}

double* StencilBench::own_row(unsigned array, std::size_t row) const {
  if (row < near_rows()) return doubles(near_[array]) + row * shape_.columns;
  return doubles(far_[array]) + (row - near_rows() + ghosts()) * shape_.columns;
}

double* StencilBench::near_ghost(unsigned array) const {
  return doubles(near_[array]) + near_rows() * shape_.columns;
}

double* StencilBench::far_ghost(unsigned array) const { return doubles(far_[array]); }

const double* StencilBench::row_seen_from(bool far, unsigned array, std::size_t row) const {
  const bool across = far == (row < near_rows());
  if (!across || ghosts() == 0) return own_row(array, row);
  return far ? far_ghost(array) : near_ghost(array);
}

double StencilBench::first_value(std::uint64_t seed, std::size_t index) {
  Random random(seed + index * 0xd1342543de82ef95u);
  return static_cast<double>(random.next() >> 11) * 0x1p-53;
}

void StencilBench::fill(std::size_t member) {
  const Share rows = share(member);
  for (std::size_t row = rows.first; row < rows.end; ++row)
    for (std::size_t column = 0; column < shape_.columns; ++column) {
      const double value = first_value(seed_, row * shape_.columns + column);
      own_row(0, row)[column] = value;
      own_row(1, row)[column] = value; // the border is never written again
    }
  if (ghosts() == 0 || rows.first == rows.end) return;
  for (const unsigned array : {0u, 1u}) { // touched by those who will read them
    if (rows.end == near_rows()) std::fill_n(near_ghost(array), shape_.columns, 0.0);
    if (rows.first == near_rows()) std::fill_n(far_ghost(array), shape_.columns, 0.0);
  }
}

void StencilBench::refresh_ghost(std::size_t member, unsigned array, Pacers& pacers) const {
  const Share rows = share(member);
  if (ghosts() == 0 || rows.first == rows.end) return;
  const std::size_t bytes = shape_.columns * sizeof(double);
  const auto refresh = [&](double* ghost, std::size_t row, bool far) {
    std::memcpy(ghost, own_row(array, row), bytes);
    pacers.of(!far).charge(bytes, 0);
    pacers.of(far).charge(bytes, bytes); // lines that stores allocate are read first
  };
  if (rows.end == near_rows()) refresh(near_ghost(array), near_rows(), false);
  if (rows.first == near_rows()) refresh(far_ghost(array), near_rows() - 1, true);
}

/// Sweeps one row, or two at once where that is faster. Returns the next row.
std::size_t StencilBench::sweep_from(std::size_t row, std::size_t end, bool far,
                                     unsigned from) const {
  const auto in = [&](std::size_t r) { return row_seen_from(far, from, r); };
  double* out = own_row(1 - from, row);
  if (shape_.kernel == StencilKernel::seven) {
    kernels::seven_point_plane(in(row - 1), in(row), in(row + 1), out, shape_.columns,
                               shape_.width);
    return row + 1;
  }
  if (row + 1 == end || shape_.columns < kernels::two_rows_from) {
    kernels::stencil_row(in(row - 1), in(row), in(row + 1), out, shape_.columns);
    return row + 1;
  }
  kernels::stencil_two_rows({in(row - 1), in(row), in(row + 1), in(row + 2)},
                            {out, own_row(1 - from, row + 1)}, shape_.columns);
  return row + 2;
}

void StencilBench::sweep(const Share& rows, bool far, unsigned from, Pacers& pacers) const {
  const std::size_t end = std::min(rows.end, shape_.rows - 1);
  const std::size_t row_bytes = shape_.columns * sizeof(double);
  const bool reads_across = shared() && ghosts() == 0;
  std::size_t row = std::max<std::size_t>(rows.first, 1);
  while (row < end) {
    const std::size_t next = sweep_from(row, end, far, from);
    const std::size_t bytes = (next - row) * row_bytes;
    pacers.of(far).charge(2 * bytes, bytes); // loaded, and allocated by the stores
    if (reads_across && (far ? row == near_rows() : next == near_rows()))
      pacers.of(!far).charge(row_bytes, 0);
    row = next;
  }
}

Result<StencilRun> StencilBench::run(std::size_t sweeps) {
  struct Slowest {
    std::atomic<std::uint64_t> near{0};
    std::atomic<std::uint64_t> far{0};
    std::atomic<std::uint64_t> ended_ns{0};
  };
  std::vector<Slowest> slowest(sweeps);
  std::vector<std::uint64_t> began_ns(cpus_.size());
  kernels::Barrier meeting(cpus_.size());
  Result<kernels::TeamRun> filled =
      kernels::run_team(cpus_, [&](std::size_t member) { fill(member); });
  if (!filled) return filled.error();
  Result<kernels::TeamRun> run = kernels::run_team(cpus_, [&](std::size_t member) {
    const bool far = member >= near_threads_;
    const Share rows = share(member);
    Pacers own = pacers();
    meeting.wait();
    began_ns[member] = os::now_ns();
    for (std::size_t i = 0; i < sweeps; ++i) {
      const unsigned from = i % 2;
      const std::uint64_t start = os::now_ns();
      // All rows of `from` are final since the last meeting: this is the time between sweeps.
      own.near.start();
      own.far.start();
      refresh_ghost(member, from, own);
      sweep(rows, far, from, own);
      const std::uint64_t end = os::now_ns();
      raise_to(far ? slowest[i].far : slowest[i].near, end - start);
      raise_to(slowest[i].ended_ns, end);
      meeting.wait();
    }
  });
  if (!run) return run.error();
  current_ = sweeps % 2;
  StencilRun result;
  std::uint64_t before = *std::min_element(began_ns.begin(), began_ns.end());
  for (const Slowest& sweep : slowest) {
    result.sweeps.push_back({sweep.near, sweep.far, sweep.ended_ns - before});
    before = sweep.ended_ns;
  }
  result.members = std::move(run->members);
  return result;
}

void StencilBench::sweep_serially(unsigned from) const {
  const std::size_t width = shape_.width;
  const auto inner = [&](std::size_t k) { // not of the border
    if (shape_.kernel == StencilKernel::eight) return k > 0 && k + 1 < shape_.columns;
    const std::size_t row = k / width;
    const std::size_t column = k % width;
    return row > 0 && row + 1 < shape_.columns / width && column > 0 && column + 1 < width;
  };
  for (std::size_t row = 1; row + 1 < shape_.rows; ++row) {
    const double* above = own_row(from, row - 1);
    const double* middle = own_row(from, row);
    const double* below = own_row(from, row + 1);
    double* out = own_row(1 - from, row);
    for (std::size_t k = 0; k < shape_.columns; ++k)
      if (inner(k))
        out[k] = shape_.kernel == StencilKernel::eight
                     ? kernels::mean_of_eight(above, middle, below, k)
                     : kernels::mean_of_seven(above, middle, below, k, width);
  }
}

Status StencilBench::run_serially(std::size_t sweeps) {
  for (std::size_t member = 0; member < cpus_.size(); ++member)
    fill(member);
  for (std::size_t i = 0; i < sweeps; ++i)
    sweep_serially(i % 2);
  current_ = sweeps % 2;
  return Done{};
}

std::vector<double> StencilBench::values() const {
  std::vector<double> all;
  all.reserve(shape_.rows * shape_.columns);
  for (std::size_t row = 0; row < shape_.rows; ++row)
    all.insert(all.end(), own_row(current_, row), own_row(current_, row) + shape_.columns);
  return all;
}

std::uint64_t StencilBench::checksum() const {
  std::uint64_t sum = 0;
  for (std::size_t row = 0; row < shape_.rows; ++row) {
    const double* own = own_row(current_, row);
    for (std::size_t k = 0; k < shape_.columns; ++k)
      sum = (sum ^ std::bit_cast<std::uint64_t>(own[k])) * 0x100000001b3u; // FNV-1a, by words
  }
  return sum;
}

} // namespace nearfar::bench
