#include "bench/pipeline.hpp"

#include <algorithm>
#include <atomic>
#include <semaphore>

#include "base/random.hpp"
#include "kernels/barrier.hpp"
#include "kernels/paced_arrays.hpp"
#include "os/clock.hpp"

namespace nearfar::bench {

namespace {

double* doubles(const tier::Mapping& mapping) { return reinterpret_cast<double*>(mapping.data()); }

Status map_into(tier::Mapping& mapping, const tier::Spec& spec, std::size_t bytes) {
  Result<tier::Mapping> made = tier::map(spec, bytes);
  if (!made) return made.error();
  mapping = std::move(*made);
  return Done{};
}

/// Adds the time since `from` to a sum, and to the laps while they have room; sets `from` to now.
void add_lap(std::uint64_t& sum, std::uint64_t& from, std::vector<Lap>& laps, Stage stage) {
  const std::uint64_t now = os::now_ns();
  sum += now - from;
  if (laps.size() < laps.capacity()) laps.push_back({stage, from, now}); // reserved by run()
  from = now;
}

} // namespace

/// The first thread of one side releases a semaphore, that of the other side acquires it; the
/// barriers order the work of the other threads of a side before and after.
struct PipelineBench::Meeting {
  Meeting(std::size_t near, std::size_t far, std::size_t chunks, std::size_t wanted)
      : near_side(near), far_side(std::max<std::size_t>(far, 1)), iterations(wanted), changes(near),
        parts(chunks) {}

  kernels::Barrier near_side;
  kernels::Barrier far_side;
  std::binary_semaphore finished{0}; ///< near to far: a vector is finished and swapped
  std::binary_semaphore copied{0};   ///< far to near: it may be written over
  /// To do. Lowered by the first near thread between two hand-overs, to the one that it is at.
  std::atomic<std::size_t> iterations;
  std::vector<double> changes; ///< of each near thread
  std::vector<kernels::Analysis> parts;
};

Result<PipelineBench> PipelineBench::create(std::size_t elements, const tier::Spec& near,
                                            const tier::Spec& far, std::span<const int> near_cpus,
                                            std::span<const int> far_cpus, std::uint64_t seed) {
  if (near_cpus.empty() || elements == 0 || elements > UINT32_MAX)
    return Error::make(Errc::bad_input, "a pipeline wants a near thread and 1 to 2^32 - 1 elements")
        .try_next("give --near-threads and --elements");
  PipelineBench bench(elements, seed);
  bench.near_threads_ = near_cpus.size();
  bench.cpus_.assign(near_cpus.begin(), near_cpus.end());
  bench.cpus_.insert(bench.cpus_.end(), far_cpus.begin(), far_cpus.end());
  const std::size_t stored = elements * row_elements;
  const std::size_t vector_bytes = elements * sizeof(double);
  for (const auto& [mapping, bytes] :
       {std::pair{&bench.starts_, (elements + 1) * sizeof(std::uint64_t)},
        {&bench.columns_, stored * sizeof(std::uint32_t)},
        {&bench.values_, stored * sizeof(double)},
        {&bench.source_, vector_bytes},
        {&bench.vectors_[0], vector_bytes},
        {&bench.vectors_[1], vector_bytes}})
    if (Status s = map_into(*mapping, near, bytes); !s) return s.error();
  if (!far_cpus.empty()) {
    Result<tier::Mapping> mapping = tier::map_to_pace(far, vector_bytes);
    if (!mapping) return mapping.error();
    bench.far_ = std::move(*mapping);
    bench.far_device_ = bench.devices_.of(far);
  }
  Result<kernels::TeamRun> filled = kernels::run_team(bench.cpus_, [&](std::size_t member) {
    if (member < bench.near_threads_) {
      bench.fill(bench.share(member, bench.near_threads_));
      return;
    }
    const Share own = bench.share(member - bench.near_threads_, bench.far_threads());
    std::fill(doubles(bench.far_) + bench.first_of(own.first_chunk),
              doubles(bench.far_) + bench.first_of(own.end_chunk), 0.0);
  });
  if (!filled) return filled.error();
  for (const tier::Mapping* mapping : {&bench.starts_, &bench.columns_, &bench.values_,
                                       &bench.source_, &bench.vectors_[0], &bench.vectors_[1]})
    if (Status s = tier::verify_pages(near, *mapping); !s) return s.error();
  if (!far_cpus.empty())
    if (Status s = tier::verify_pages(far, bench.far_); !s) return s.error();
  return bench;
}

std::size_t PipelineBench::first_of(std::size_t chunk) const {
  return std::min(chunk * kernels::chunk_elements, elements_);
}

PipelineBench::Share PipelineBench::share(std::size_t index, std::size_t parts) const {
  return {chunks() * index / parts, chunks() * (index + 1) / parts};
}

kernels::SparseMatrix PipelineBench::matrix() const {
  return {reinterpret_cast<const std::uint64_t*>(starts_.data()),
          reinterpret_cast<const std::uint32_t*>(columns_.data()), doubles(values_)};
}

double* PipelineBench::vector(std::size_t index) const { return doubles(vectors_[index % 2]); }

double* PipelineBench::source() const { return doubles(source_); }

void PipelineBench::fill(const Share& share) {
  auto* starts = reinterpret_cast<std::uint64_t*>(starts_.data());
  auto* columns = reinterpret_cast<std::uint32_t*>(columns_.data());
  for (std::size_t row = first_of(share.first_chunk); row < first_of(share.end_chunk); ++row) {
    Random random(seed_ + row * 0xd1342543de82ef95u);
    if (row == 0) starts[0] = 0;
    starts[row + 1] = (row + 1) * row_elements;
    for (std::size_t k = 0; k < row_elements; ++k) {
      const std::size_t low = row - std::min(row, row_reach);
      const std::size_t high = std::min(row + row_reach, elements_ - 1);
      columns[row * row_elements + k] =
          static_cast<std::uint32_t>(low + random.below(high - low + 1));
      doubles(values_)[row * row_elements + k] = 1.0 / row_elements; // rows sum up to 1
    }
    source()[row] = static_cast<double>(random.next() >> 11) * 0x1p-53;
    vector(0)[row] = vector(1)[row] = source()[row];
  }
}

/// Computes one vector from the last; when it returns, all threads know the largest change of all
/// rows.
void PipelineBench::generate(std::size_t index, std::size_t iteration, Meeting& meeting) {
  const Share own = share(index, near_threads_);
  meeting.changes[index] =
      kernels::sparse_step(matrix(), vector(iteration), source(), vector(iteration + 1),
                           first_of(own.first_chunk), first_of(own.end_chunk));
  meeting.near_side.wait();
}

void PipelineBench::near_side(std::size_t index, PipelineRun& run, Meeting& meeting) {
  const bool leads = index == 0;
  const bool alone = far_threads() == 0;
  const Share own = share(index, near_threads_);
  kernels::Pacer unpaced(nullptr);
  PipelineRun ignored; // what the other threads saw
  PipelineRun& seen = leads ? run : ignored;
  std::uint64_t lap = os::now_ns();
  for (std::size_t i = 0; i < meeting.iterations; ++i) {
    generate(index, i, meeting);
    if (leads)
      run.findings[i].change = *std::max_element(meeting.changes.begin(), meeting.changes.end());
    add_lap(seen.generate_ns, lap, seen.near_laps, Stage::generate);
    if (leads && *stopping_) meeting.iterations = i + 1;
    if (alone) {
      kernels::analyze_chunks(vector(i + 1), elements_, own.first_chunk, own.end_chunk,
                              meeting.parts.data(), unpaced);
      meeting.near_side.wait();
      if (leads) run.findings[i].analysis = kernels::combine(meeting.parts);
      add_lap(seen.analyse_ns, lap, seen.near_laps, Stage::analyse);
    } else if (leads) {
      if (i > 0) meeting.copied.acquire(); // the vector that the next iteration writes over
      meeting.finished.release();
      add_lap(run.generate_idle_ns, lap, run.near_laps, Stage::generate_idle);
    }
    meeting.near_side.wait(); // swapped: all go on from the new vector
    lap = os::now_ns();
  }
}

void PipelineBench::far_side(std::size_t index, PipelineRun& run, Meeting& meeting) {
  const bool leads = index == 0;
  const Share own = share(index, far_threads());
  const std::size_t first = first_of(own.first_chunk);
  const kernels::ArrayKernel& copy = *kernels::find_array_kernel("copy");
  kernels::ArrayPacers transfer = {kernels::Pacer(nullptr), kernels::Pacer(nullptr),
                                   kernels::Pacer(far_device_)};
  kernels::Pacer analysis(far_device_);
  PipelineRun ignored;
  PipelineRun& seen = leads ? run : ignored;
  std::uint64_t lap = os::now_ns();
  for (std::size_t i = 0; i < meeting.iterations; ++i) {
    if (leads) meeting.finished.acquire();
    meeting.far_side.wait();
    add_lap(seen.transfer_idle_ns, lap, seen.far_laps, Stage::transfer_idle);
    kernels::run_paced(copy,
                       {vector(i + 1) + first, nullptr, doubles(far_) + first,
                        first_of(own.end_chunk) - first, 0.0},
                       transfer);
    meeting.far_side.wait();
    if (leads) meeting.copied.release();
    add_lap(seen.transfer_ns, lap, seen.far_laps, Stage::transfer);
    kernels::analyze_chunks(doubles(far_), elements_, own.first_chunk, own.end_chunk,
                            meeting.parts.data(), analysis);
    meeting.far_side.wait();
    if (leads) run.findings[i].analysis = kernels::combine(meeting.parts);
    add_lap(seen.analyse_ns, lap, seen.far_laps, Stage::analyse);
  }
}

Result<PipelineRun> PipelineBench::run(std::size_t iterations) {
  PipelineRun result;
  result.findings.resize(iterations);
  const std::size_t kept = std::min(iterations, kept_iterations);
  result.near_laps.reserve(2 * kept);
  result.far_laps.reserve(far_threads() == 0 ? 0 : 3 * kept);
  std::copy_n(source(), elements_, vector(0));
  *stopping_ = false;
  Meeting meeting(near_threads_, far_threads(), chunks(), iterations);
  Result<kernels::TeamRun> run = kernels::run_team(cpus_, [&](std::size_t member) {
    if (member < near_threads_)
      near_side(member, result, meeting);
    else
      far_side(member - near_threads_, result, meeting);
  });
  if (!run) return run.error();
  if (meeting.iterations < iterations) return Error::make(Errc::os_error, "stopped");
  result.total_ns = static_cast<std::uint64_t>(run->seconds() * 1e9);
  result.members = std::move(run->members);
  return result;
}

} // namespace nearfar::bench
