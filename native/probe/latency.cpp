#include "probe/latency.hpp"

#include <algorithm>

#include "kernels/team.hpp"
#include "os/clock.hpp"
#include "os/cpu.hpp"

namespace nearfar::probe {

namespace {

constexpr std::size_t unroll = 16; // of the chase loop
constexpr std::size_t settle_steps = 4096;

/// Runs `work` on a thread pinned to `cpu`, so that the caller's affinity stays as it was.
template <class Work>
Result<os::Usage> on_cpu(int cpu, const Work& work) {
  Result<kernels::TeamRun> run = kernels::run_team({&cpu, 1}, [&](std::size_t) { work(); });
  if (!run) return run.error();
  return run->members[0].usage;
}

} // namespace

LatencyProbe::LatencyProbe(tier::Mapping mapping, int cpu)
    : mapping_(std::move(mapping)), cpu_(cpu) {}

Result<LatencyProbe> LatencyProbe::create(const tier::Spec& spec, std::size_t max_region_bytes,
                                          int cpu) {
  Result<tier::Mapping> mapping = tier::map(spec, max_region_bytes);
  if (!mapping) return mapping.error();
  if (auto touched = on_cpu(cpu, [&] { os::prefault(mapping->range); }); !touched)
    return touched.error();
  if (Status pages = tier::verify_pages(spec, *mapping); !pages) return pages.error();
  return LatencyProbe(std::move(*mapping), cpu);
}

Status LatencyProbe::prepare(std::size_t region_bytes, std::size_t block_bytes, std::uint64_t seed,
                             std::size_t warm_steps) {
  if (block_bytes < sizeof(kernels::ChaseNode) || region_bytes < block_bytes ||
      region_bytes > mapping_.range.size() || region_bytes / block_bytes > UINT32_MAX)
    return Error::make(Errc::bad_input, "cannot chase blocks of %zu bytes in a region of %zu bytes",
                       block_bytes, region_bytes)
        .try_next("a region is at least one block, and at most what the tier was mapped with");
  blocks_ = static_cast<std::uint32_t>(region_bytes / block_bytes);
  order_.resize(blocks_);
  const std::size_t two_rounds = std::max(2 * std::size_t{blocks_}, settle_steps);
  const std::size_t steps = std::max(std::min(two_rounds, warm_steps) / unroll * unroll, unroll);
  auto walked = on_cpu(cpu_, [&] {
    Random random(seed);
    at_ = kernels::link_cycle(mapping_.data(), block_bytes, order_.data(), blocks_, random);
    const std::uint64_t start = os::now_ns();
    at_ = kernels::chase(at_, steps);
    step_ns_ = static_cast<double>(os::now_ns() - start) / static_cast<double>(steps);
  });
  if (!walked) return walked.error();
  return Done{};
}

Result<LatencySample> LatencyProbe::sample(std::uint64_t nanoseconds) {
  if (at_ == nullptr) return Error::make(Errc::bad_input, "a chase must be prepared first");
  const double wanted = static_cast<double>(nanoseconds) / std::max(step_ns_, 0.1);
  LatencySample sample;
  sample.steps = std::max(static_cast<std::size_t>(wanted) / unroll * unroll, unroll);
  std::uint64_t first_rank = 0;
  std::uint64_t elapsed_ns = 0;
  Result<os::Usage> usage = on_cpu(cpu_, [&] {
    // Untimed: lets a thread that is new on its processor find its way back into the caches.
    at_ = kernels::chase(at_, std::min(sample.steps, settle_steps));
    first_rank = at_->rank;
    const std::uint64_t start = os::now_ns();
    at_ = kernels::chase(at_, sample.steps);
    elapsed_ns = os::now_ns() - start;
  });
  if (!usage) return usage.error();
  if (at_->rank != (first_rank + sample.steps) % blocks_)
    return Error::make(Errc::failed_check,
                       "the chase ended on the wrong node: its loads were not all made")
        .try_next("report this: the timed loop is broken on this machine");
  sample.usage = *usage;
  sample.latency_ns = static_cast<double>(elapsed_ns) / static_cast<double>(sample.steps);
  step_ns_ = sample.latency_ns;
  return sample;
}

} // namespace nearfar::probe
