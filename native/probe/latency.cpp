#include "probe/latency.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "kernels/team.hpp"
#include "os/clock.hpp"
#include "os/cpu.hpp"
#include "os/tsc.hpp"

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

bool is_block(std::size_t bytes) {
  return bytes == 16 || bytes == 32 || (bytes != 0 && bytes % os::cache_line_bytes == 0);
}

Error not_prepared() { return Error::make(Errc::bad_input, "a chase must be prepared first"); }

Error loads_missing() {
  return Error::make(Errc::failed_check,
                     "the chase ended on the wrong node: its loads were not all made")
      .try_next("report this: the timed loop is broken on this machine");
}

} // namespace

LatencyProbe::LatencyProbe(tier::Mapping mapping, int cpu, std::uint64_t touch_ns)
    : mapping_(std::move(mapping)), cpu_(cpu), touch_ns_(touch_ns) {}

Result<LatencyProbe> LatencyProbe::create(const tier::Spec& spec, std::size_t max_region_bytes,
                                          int cpu) {
  std::optional<Result<tier::Mapping>> mapping_or_error;
  Result<os::Usage> touched = on_cpu(cpu, [&] {
    mapping_or_error.emplace(tier::map(spec, max_region_bytes)); // touches the pages of some tiers
    if (*mapping_or_error) os::prefault((*mapping_or_error)->range);
  });
  if (!touched) return touched.error();
  Result<tier::Mapping>& mapping = *mapping_or_error;
  if (!mapping) return mapping.error();
  if (Status pages = tier::verify_pages(spec, *mapping); !pages) return pages.error();
  return LatencyProbe(std::move(*mapping), cpu, touched->cpu_ns);
}

Status LatencyProbe::prepare(std::size_t region_bytes, std::size_t block_bytes, std::uint64_t seed,
                             std::size_t warm_steps) {
  if (!is_block(block_bytes) || region_bytes < block_bytes ||
      region_bytes > mapping_.range.size() || region_bytes / block_bytes > UINT32_MAX)
    return Error::make(Errc::bad_input, "cannot chase blocks of %zu bytes in a region of %zu bytes",
                       block_bytes, region_bytes)
        .try_next("a block is 16, 32 or a multiple of 64 bytes, and a region at least one block");
  const auto blocks = static_cast<std::uint32_t>(region_bytes / block_bytes);
  order_.resize(blocks);
  block_bytes_ = block_bytes;
  nodes_ = blocks * kernels::nodes_in(block_bytes);
  const std::size_t two_rounds = std::max(2 * nodes_, settle_steps);
  const std::size_t steps = std::max(std::min(two_rounds, warm_steps) / unroll * unroll, unroll);
  auto walked = on_cpu(cpu_, [&] {
    Random random(seed);
    at_ = kernels::link_cycle(mapping_.data(), block_bytes, order_.data(), blocks, random);
    const std::uint64_t start = os::now_ns();
    at_ = kernels::chase(at_, steps);
    step_ns_ = static_cast<double>(os::now_ns() - start) / static_cast<double>(steps);
  });
  if (!walked) return walked.error();
  return Done{};
}

const kernels::ChaseNode* LatencyProbe::node_at(std::size_t rank) const {
  const std::size_t nodes = kernels::nodes_in(block_bytes_);
  const std::byte* block = mapping_.data() + std::size_t{order_[rank / nodes]} * block_bytes_;
  return reinterpret_cast<const kernels::ChaseNode*>(block + rank % nodes * os::cache_line_bytes);
}

std::size_t LatencyProbe::steps_in(std::uint64_t nanoseconds) const {
  const double wanted = static_cast<double>(nanoseconds) / std::max(step_ns_, 0.1);
  return std::max(static_cast<std::size_t>(wanted) / unroll * unroll, unroll);
}

Result<LatencySample> LatencyProbe::sample(std::uint64_t nanoseconds) {
  if (at_ == nullptr) return not_prepared();
  LatencySample sample;
  sample.steps = steps_in(nanoseconds);
  std::uint64_t first_rank = 0;
  std::uint64_t elapsed_ns = 0;
  Result<os::Usage> usage = on_cpu(cpu_, [&] {
    // Untimed: warms the caches of a thread that is new on its CPU.
    at_ = kernels::chase(at_, std::min(sample.steps, settle_steps));
    first_rank = at_->rank;
    const std::uint64_t start = os::now_ns();
    at_ = kernels::chase(at_, sample.steps);
    elapsed_ns = os::now_ns() - start;
  });
  if (!usage) return usage.error();
  if (at_->rank != (first_rank + sample.steps) % nodes_) return loads_missing();
  sample.usage = *usage;
  sample.latency_ns = static_cast<double>(elapsed_ns) / static_cast<double>(sample.steps);
  step_ns_ = sample.latency_ns;
  return sample;
}

template <class Walk>
Result<LatencySample> LatencyProbe::sample_concurrent(std::size_t chains, std::uint64_t nanoseconds,
                                                      const Walk& walk) {
  if (at_ == nullptr) return not_prepared();
  if (chains == 0 || chains > kernels::max_chains || chains > nodes_)
    return Error::make(Errc::bad_input, "%zu chains cannot be run", chains)
        .try_next("from 1 to %zu, and no more than the region has nodes", kernels::max_chains);
  std::array<const kernels::ChaseNode*, kernels::max_chains> at{};
  std::array<std::uint64_t, kernels::max_chains> first_rank{};
  for (std::size_t c = 0; c < chains; ++c) {
    first_rank[c] = (at_->rank + c * nodes_ / chains) % nodes_;
    at[c] = node_at(first_rank[c]);
  }
  LatencySample sample;
  const std::size_t steps = steps_in(nanoseconds); // of each chain: parallel ones end sooner
  sample.steps = steps * chains;
  std::uint64_t elapsed_ns = 0;
  Result<os::Usage> usage = on_cpu(cpu_, [&] {
    const std::uint64_t start = os::now_ns();
    walk(at.data(), steps);
    elapsed_ns = os::now_ns() - start;
  });
  if (!usage) return usage.error();
  for (std::size_t c = 0; c < chains; ++c)
    if (at[c]->rank != (first_rank[c] + steps) % nodes_) return loads_missing();
  at_ = at[0];
  sample.usage = *usage;
  sample.latency_ns = static_cast<double>(elapsed_ns) / static_cast<double>(sample.steps);
  return sample;
}

Result<LatencySample> LatencyProbe::sample_chains(std::size_t chains, std::uint64_t nanoseconds) {
  return sample_concurrent(chains, nanoseconds,
                           [&](const kernels::ChaseNode** at, std::size_t steps) {
                             kernels::chase_side_by_side(at, chains, steps);
                           });
}

Result<LatencySample> LatencyProbe::sample_spaced(kernels::Spacing spacing,
                                                  std::size_t instructions,
                                                  std::uint64_t nanoseconds) {
  if (instructions == 0 || instructions % kernels::spacing_unit != 0 ||
      instructions > kernels::max_spacing_instructions)
    return Error::make(Errc::bad_input, "loads cannot be spaced by %zu instructions", instructions)
        .try_next("use a multiple of %zu up to %zu", kernels::spacing_unit,
                  kernels::max_spacing_instructions);
  return sample_concurrent(kernels::max_chains, nanoseconds,
                           [&](const kernels::ChaseNode** at, std::size_t steps) {
                             kernels::chase_spaced(at, spacing, instructions, steps);
                           });
}

Result<TimedLoads> LatencyProbe::time_each(std::size_t steps) {
  if (at_ == nullptr) return not_prepared();
  TimedLoads timed;
  timed.tick_ns = os::tsc_tick_ns();
  std::uint64_t first_rank = 0;
  Result<os::Usage> usage = on_cpu(cpu_, [&] {
    timed.own_ticks = os::tsc_own_ticks();
    at_ = kernels::chase(at_, settle_steps);
    first_rank = at_->rank;
    at_ = kernels::chase_timing_each(at_, steps, timed.own_ticks, timed.ticks);
  });
  if (!usage) return usage.error();
  if (at_->rank != (first_rank + steps) % nodes_) return loads_missing();
  timed.usage = *usage;
  return timed;
}

} // namespace nearfar::probe
