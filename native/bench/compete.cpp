#include "bench/compete.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "kernels/paced_arrays.hpp"
#include "os/clock.hpp"
#include "os/steal.hpp"

namespace nearfar::bench {

namespace {

constexpr std::uint64_t look_every_ns = 50'000'000; ///< a look costs up to a millisecond

double* doubles(const tier::Mapping& mapping) { return reinterpret_cast<double*>(mapping.data()); }

/// Bytes that a thread moved within [from, to].
double bytes_within(const CompeteThread& thread, std::uint64_t from, std::uint64_t to,
                    std::size_t iteration_bytes) {
  double iterations = 0;
  std::uint64_t start = thread.start_ns;
  for (const Mark& mark : thread.marks) {
    const std::uint64_t end = thread.start_ns + mark.usage.wall_ns;
    const std::uint64_t first = std::max(start, from);
    const std::uint64_t last = std::min(end, to);
    if (last > first)
      iterations += static_cast<double>(last - first) / static_cast<double>(end - start);
    start = end;
  }
  return iterations * static_cast<double>(iteration_bytes);
}

/// Copies, at least once, until this thread or another one has completed all of its iterations.
void copy_again_and_again(const kernels::Slice& slice, kernels::ArrayPacers& pacers,
                          CompeteThread& thread, std::size_t iterations,
                          std::atomic<bool>& finished) {
  const kernels::ArrayKernel& copy = *kernels::find_array_kernel("copy");
  const os::StealMeter steal(thread.cpu);
  const std::uint64_t stolen_before = steal.taken_ns();
  std::uint64_t stolen = 0;
  std::uint64_t looked_ns = 0;
  const os::UsageMeter meter;
  thread.start_ns = os::now_ns();
  for (std::size_t i = 0; i < iterations; ++i) {
    if (i > 0 && finished.load(std::memory_order_relaxed)) break;
    kernels::run_paced(copy, slice, pacers);
    const os::Usage usage = meter.since();
    if (usage.wall_ns - looked_ns >= look_every_ns || i + 1 == iterations) {
      stolen = steal.taken_ns() - stolen_before;
      looked_ns = usage.wall_ns;
    }
    thread.marks.push_back({usage, stolen}); // reserved by the caller
  }
  finished.store(true, std::memory_order_relaxed);
}

} // namespace

void sum_up(CompeteRun& run, std::size_t bytes) {
  run.from_ns = 0;
  run.to_ns = UINT64_MAX;
  for (const CompeteThread& thread : run.threads) {
    run.from_ns = std::max(run.from_ns, thread.start_ns);
    run.to_ns = std::min(run.to_ns, thread.start_ns + thread.marks.back().usage.wall_ns);
  }
  run.near_bytes_per_s = run.far_bytes_per_s = 0;
  if (run.to_ns <= run.from_ns) return;
  const double seconds = static_cast<double>(run.to_ns - run.from_ns) * 1e-9;
  for (const CompeteThread& thread : run.threads)
    (thread.far ? run.far_bytes_per_s : run.near_bytes_per_s) +=
        bytes_within(thread, run.from_ns, run.to_ns, bytes) / seconds;
}

Result<CompeteBench> CompeteBench::create(Copy copy, const tier::Spec& near, const tier::Spec& far,
                                          std::size_t elements, std::span<const int> near_cpus,
                                          std::span<const int> far_cpus) {
  if (near_cpus.empty() && far_cpus.empty())
    return Error::make(Errc::bad_input, "no threads to copy with")
        .try_next("give --near-threads, --far-threads, or both");
  std::vector<int> cpus(near_cpus.begin(), near_cpus.end());
  cpus.insert(cpus.end(), far_cpus.begin(), far_cpus.end());
  CompeteBench bench(elements, near_cpus.size(), std::move(cpus));
  const tier::Spec& far_source = copy == Copy::near_far ? near : far;
  const tier::Spec& far_destination = copy == Copy::far_near ? near : far;
  for (std::size_t i = 0; i < bench.cpus_.size(); ++i) {
    const bool is_far = i >= bench.near_threads_;
    const tier::Spec& from = is_far ? far_source : near;
    const tier::Spec& to = is_far ? far_destination : near;
    Result<tier::Mapping> source = tier::map_to_pace(from, elements * sizeof(double));
    if (!source) return source.error();
    Result<tier::Mapping> destination = tier::map_to_pace(to, elements * sizeof(double));
    if (!destination) return destination.error();
    bench.pairs_.push_back({std::move(*source), std::move(*destination), bench.devices_.of(from),
                            bench.devices_.of(to)});
  }
  if (Status touched = bench.touch(); !touched) return touched.error();
  for (std::size_t i = 0; i < bench.pairs_.size(); ++i) {
    const bool is_far = i >= bench.near_threads_;
    const Pair& pair = bench.pairs_[i];
    if (Status s = tier::verify_pages(is_far ? far_source : near, pair.source); !s)
      return s.error();
    if (Status s = tier::verify_pages(is_far ? far_destination : near, pair.destination); !s)
      return s.error();
  }
  return bench;
}

Status CompeteBench::touch() {
  Result<kernels::TeamRun> run = kernels::run_team(cpus_, [&](std::size_t member) {
    double* source = doubles(pairs_[member].source);
    for (std::size_t i = 0; i < elements_; ++i)
      source[i] = static_cast<double>(member + 1) + static_cast<double>(i);
    std::fill_n(doubles(pairs_[member].destination), elements_, 0.0);
  });
  if (!run) return run.error();
  return Done{};
}

Result<CompeteRun> CompeteBench::run(std::size_t iterations) {
  if (iterations == 0) return Error::make(Errc::bad_input, "no iterations are nothing to measure");
  CompeteRun result;
  result.threads.resize(cpus_.size());
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    result.threads[i].far = i >= near_threads_;
    result.threads[i].cpu = cpus_[i];
    result.threads[i].marks.reserve(iterations);
  }
  std::atomic<bool> finished{false};
  Result<kernels::TeamRun> run = kernels::run_team(cpus_, [&](std::size_t member) {
    const Pair& pair = pairs_[member];
    const kernels::Slice slice{doubles(pair.source), nullptr, doubles(pair.destination), elements_,
                               0.0};
    kernels::ArrayPacers pacers = {kernels::Pacer(pair.source_device), kernels::Pacer(nullptr),
                                   kernels::Pacer(pair.destination_device)};
    copy_again_and_again(slice, pacers, result.threads[member], iterations, finished);
  });
  if (!run) return run.error();
  sum_up(result, iteration_bytes());
  return result;
}

Status CompeteBench::check() const {
  for (const Pair& pair : pairs_)
    if (std::memcmp(pair.source.data(), pair.destination.data(), elements_ * sizeof(double)) != 0)
      return Error::make(Errc::failed_check, "a copy does not hold what it was copied from")
          .try_next("check the memory of this machine; report it if it is sound");
  return Done{};
}

} // namespace nearfar::bench
