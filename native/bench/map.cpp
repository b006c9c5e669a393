#include "bench/map.hpp"

#include <algorithm>

#include "bench/map_keys.hpp"
#include "bench/map_loops.hpp"
#include "bench/pool_place.hpp"

namespace nearfar::bench {

namespace {

constexpr std::uint64_t max_operations = 1'000'000'000;

Status check(const MapPlan& plan) {
  if (plan.operations == 0 || plan.operations > max_operations)
    return Error::make(Errc::bad_input, "%llu operations cannot be run",
                       static_cast<unsigned long long>(plan.operations))
        .try_next("give -n from 1 to %llu", static_cast<unsigned long long>(max_operations));
  if (plan.value_bytes == 0 || plan.value_bytes > (std::uint64_t{1} << 20))
    return Error::make(Errc::bad_input, "values of %llu bytes cannot be stored",
                       static_cast<unsigned long long>(plan.value_bytes))
        .try_next("give -d from 1 to 1048576 bytes");
  if (plan.alloc && plan.ours())
    return Error::make(Errc::bad_input,
                       "only the maps after PMDK keep values as libpmemobj's objects")
        .try_next("leave --alloc out, or choose map_atomic, map_tx or map_rp");
  if (plan.in_dram())
    if (Status sound = check_counterpart(plan.tier); !sound) return sound;
  if (plan.sample != 0 && plan.operation != MapOperation::get)
    return Error::make(Errc::bad_input, "only gets can be a sample of all keys");
  if (plan.writer_cpu && plan.operation != MapOperation::get)
    return Error::make(Errc::bad_input, "only gets can have a writer meanwhile");
  if (plan.cpus.empty() || plan.cpus.size() > plan.operations)
    return Error::make(Errc::bad_input, "%llu operations cannot be shared by %zu threads",
                       static_cast<unsigned long long>(plan.operations), plan.cpus.size())
        .try_next("give at least one operation a thread");
  return Done{};
}

/// The keys of thread `index` of `threads`.
std::span<const std::uint64_t> part(std::span<const std::uint64_t> keys, std::size_t index,
                                    std::size_t threads) {
  const std::size_t begin = keys.size() * index / threads;
  return keys.subspan(begin, keys.size() * (index + 1) / threads - begin);
}

/// First start to last end of the loops, without the time for opening the counters of their region.
double span_of(const std::vector<MapShare>& shares) {
  const auto starts = [](const MapShare& a, const MapShare& b) { return a.start_ns < b.start_ns; };
  const auto ends = [](const MapShare& a, const MapShare& b) { return a.end_ns < b.end_ns; };
  const std::uint64_t start = std::ranges::min_element(shares, starts)->start_ns;
  return static_cast<double>(std::ranges::max_element(shares, ends)->end_ns - start) * 1e-9;
}

MapRun summary(const kernels::TeamRun& team, const std::vector<MapShare>& shares, bool each) {
  MapRun run;
  run.seconds = span_of(shares);
  run.members = team.members;
  Histogram all;
  std::uint64_t sum = 0;
  std::uint64_t least = ~std::uint64_t{0};
  for (const MapShare& share : shares) {
    run.counted.fences += share.counted.fences;
    run.counted.lines += share.counted.lines;
    run.worst_cpu_ns = std::max(run.worst_cpu_ns, static_cast<double>(share.worst_cpu_ns));
    all.add(share.ticks);
    sum += share.sum_ticks;
    least = std::min(least, share.min_ticks);
  }
  if (!each) return run;
  const double tick_ns = os::tsc_tick_ns();
  const auto ns = [&](std::uint64_t ticks) { return static_cast<double>(ticks) * tick_ns; };
  run.mean_ns = ns(sum) / static_cast<double>(all.total());
  run.min_ns = ns(least);
  run.largest_ns = ns(all.largest());
  for (const double share : map_percentiles)
    run.percentiles_ns.push_back(ns(all.percentile(share)));
  return run;
}

} // namespace

MapBench::MapBench(MapPlan plan) : plan_(std::move(plan)) {}
MapBench::MapBench(MapBench&&) noexcept = default;
MapBench& MapBench::operator=(MapBench&&) noexcept = default;
MapBench::~MapBench() = default;

std::span<const std::byte> MapBench::pool() const { return subject_->pool(); }

Result<MapBench> MapBench::create(const MapPlan& plan) {
  if (Status sound = check(plan); !sound) return sound.error();
  MapBench bench(plan);
  Result<std::unique_ptr<MapSubject>> subject = plan.ours() ? our_map(plan) : pmdk_map(plan);
  if (!subject) return subject.error();
  bench.subject_ = std::move(*subject);
  std::uint32_t seed = plan.seed;
  bench.keys_ = draw_keys(plan.operations, seed);
  if (plan.operation == MapOperation::insert) return bench;
  if (Status loaded = bench.load(); !loaded) return loaded.error();
  bench.keys_ = shuffled(std::move(bench.keys_), seed);
  return bench;
}

Status MapBench::load() {
  MapShare share;
  const auto work = [&](std::size_t) {
    subject_->run(MapOperation::insert, MapPass::whole, keys_, share);
  };
  Result<kernels::TeamRun> team = kernels::run_team({plan_.cpus.data(), 1}, work);
  if (!team) return team.error();
  if (share.failure) return *share.failure;
  load_seconds_ = team->seconds();
  return Done{};
}

/// All keys, or the next part if runs are samples.
std::span<const std::uint64_t> MapBench::next_keys() {
  const std::span all(keys_);
  if (plan_.sample == 0 || plan_.sample >= keys_.size()) return all;
  if (sampled_ + plan_.sample > keys_.size()) sampled_ = 0;
  sampled_ += plan_.sample;
  return all.subspan(sampled_ - plan_.sample, plan_.sample);
}

Result<MapRun> MapBench::run(MapPass pass, MeasuredRegion* region) {
  const bool only_gets = pass == MapPass::dependent || pass == MapPass::batched;
  if (spent_ || (only_gets && plan_.operation != MapOperation::get) ||
      (pass == MapPass::batched && !plan_.ours()))
    return Error::make(Errc::bad_input, "this pass cannot be run here")
        .try_next("run insertions and removals once, dependent passes over gets, and batched ones "
                  "over gets of our map");
  spent_ = plan_.operation != MapOperation::get;
  std::vector<MapShare> shares(plan_.cpus.size());
  const std::span<const std::uint64_t> keys = next_keys();
  std::vector<int> cpus = plan_.cpus;
  if (plan_.writer_cpu) cpus.push_back(*plan_.writer_cpu);
  std::atomic<std::size_t> unfinished = shares.size();
  std::atomic<bool> ended = false;
  std::uint64_t written = 0;
  const auto work = [&](std::size_t index) {
    if (index == shares.size()) {
      written = subject_->write_until(ended);
      return;
    }
    MapShare& share = shares[index];
    share.edge = {region, index};
    if (Status ready = share.edge.prepare(); ready)
      subject_->run(plan_.operation, pass, part(keys, index, shares.size()), share);
    else
      share.failure = ready.error();
    if (--unfinished == 0) ended = true;
  };
  Result<kernels::TeamRun> team = kernels::run_team(cpus, work);
  if (!team) return team.error();
  for (const MapShare& share : shares)
    if (share.failure) return *share.failure;
  if (plan_.writer_cpu && written == 0) return wrong_answer("its writer");
  MapRun done = summary(*team, shares, pass == MapPass::each);
  done.written = written;
  return done;
}

} // namespace nearfar::bench
