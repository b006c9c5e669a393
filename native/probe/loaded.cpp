#include "probe/loaded.hpp"

#include <atomic>
#include <limits>

#include "kernels/chase.hpp"
#include "os/clock.hpp"
#include "os/cpu.hpp"

namespace nearfar::probe {

namespace {

constexpr std::size_t chase_burst = 256;        // loads between two looks at the clock
constexpr std::size_t paced_burst_bytes = 4096; // small, so that load is even
constexpr std::size_t full_burst_bytes = 1 << 18;

/// One traffic thread: bursts, each not before its time.
class Traffic {
public:
  Traffic(const AccessPattern& pattern, std::byte* base, std::size_t bytes, std::uint64_t seed)
      : pattern_(pattern), base_(base), bytes_(bytes), seed_(seed) {}

  void run(double offered_bytes_per_s, const std::atomic<bool>& stop) {
    const std::size_t group = pattern_.reads + pattern_.writes;
    const double most = std::numeric_limits<double>::infinity();
    const std::size_t burst = offered_bytes_per_s < most ? paced_burst_bytes : full_burst_bytes;
    const std::size_t wanted = burst / pattern_.block_bytes;
    accesses_ = (wanted + group - 1) / group * group;
    const double burst_bytes = static_cast<double>(accesses_ * pattern_.block_bytes);
    const double gap_ns = burst_bytes / offered_bytes_per_s * 1e9; // 0 for an infinite offer
    kernels::AccessLoop loop = loop_over(pattern_, base_, bytes_, seed_);
    const std::uint64_t start = os::now_ns();
    while (!stop.load(std::memory_order_relaxed)) {
      const double due = gap_ns * static_cast<double>(bursts_);
      if (gap_ns > 0 && static_cast<double>(os::now_ns() - start) < due) {
        os::spin_pause();
        continue;
      }
      sum_ += kernels::run_accesses(loop, accesses_);
      ++bursts_;
    }
  }

  bool all_made() const {
    kernels::AccessLoop loop = loop_over(pattern_, base_, bytes_, seed_);
    std::uint64_t expected = 0;
    for (std::size_t b = 0; b < bursts_; ++b)
      expected += kernels::expected_sum(loop, accesses_);
    return expected == sum_;
  }

  std::size_t bytes() const { return bursts_ * accesses_ * pattern_.block_bytes; }

private:
  AccessPattern pattern_;
  std::byte* base_;
  std::size_t bytes_;
  std::uint64_t seed_;
  std::size_t accesses_ = 0; ///< in a burst
  std::size_t bursts_ = 0;
  std::uint64_t sum_ = 0;
};

double rate(std::size_t bytes, const kernels::Member& member) {
  return static_cast<double>(bytes) / (static_cast<double>(member.end_ns - member.start_ns) * 1e-9);
}

} // namespace

LoadedProbe::LoadedProbe(tier::Mapping chase, tier::Mapping traffic, std::vector<int> cpus)
    : chase_(std::move(chase)), traffic_(std::move(traffic)), cpus_(std::move(cpus)) {}

Result<LoadedProbe> LoadedProbe::create(const tier::Spec& spec, std::size_t chase_bytes,
                                        std::size_t traffic_bytes, int chaser_cpu,
                                        std::span<const int> traffic_cpus, std::uint64_t seed) {
  if (traffic_cpus.empty())
    return Error::make(Errc::unsupported, "latency under load needs two processors")
        .try_next("give --cpus at least two");
  Result<tier::Mapping> chase = tier::map(spec, chase_bytes);
  if (!chase) return chase.error();
  Result<tier::Mapping> traffic = tier::map(spec, traffic_bytes * traffic_cpus.size());
  if (!traffic) return traffic.error();
  std::vector<int> cpus = {chaser_cpu};
  cpus.insert(cpus.end(), traffic_cpus.begin(), traffic_cpus.end());
  LoadedProbe probe(std::move(*chase), std::move(*traffic), std::move(cpus));
  probe.lines_ = chase_bytes / os::cache_line_bytes;
  std::vector<std::uint32_t> order(probe.lines_);
  Result<kernels::TeamRun> ready = kernels::run_team(probe.cpus_, [&](std::size_t member) {
    if (member == 0) {
      Random random(seed);
      probe.at_ = kernels::link_cycle(probe.chase_.data(), os::cache_line_bytes, order.data(),
                                      static_cast<std::uint32_t>(probe.lines_), random);
    } else {
      kernels::fill_lines(probe.traffic_.data() + (member - 1) * traffic_bytes,
                          traffic_bytes / os::cache_line_bytes);
    }
  });
  if (!ready) return ready.error();
  for (const tier::Mapping* mapping : {&probe.chase_, &probe.traffic_})
    if (Status pages = tier::verify_pages(spec, *mapping); !pages) return pages.error();
  return probe;
}

Result<LoadedSample> LoadedProbe::run(const AccessPattern& pattern, double offered_bytes_per_s,
                                      std::uint64_t nanoseconds, std::uint64_t seed) {
  const std::size_t slice = traffic_.range.size() / (cpus_.size() - 1);
  if (Status fits = check_pattern(pattern, slice); !fits) return fits.error();
  std::vector<Traffic> traffic;
  for (std::size_t t = 0; t + 1 < cpus_.size(); ++t)
    traffic.emplace_back(pattern, traffic_.data() + t * slice, slice, seed + t);
  std::atomic<bool> stop{false};
  const std::uint64_t first_rank = at_->rank;
  std::size_t steps = 0;
  Result<kernels::TeamRun> run = kernels::run_team(cpus_, [&](std::size_t member) {
    if (member > 0) {
      if (offered_bytes_per_s > 0) traffic[member - 1].run(offered_bytes_per_s, stop);
      return;
    }
    const std::uint64_t start = os::now_ns();
    for (; os::now_ns() - start < nanoseconds; steps += chase_burst)
      at_ = kernels::chase(at_, chase_burst);
    stop.store(true, std::memory_order_relaxed);
  });
  if (!run) return run.error();
  LoadedSample sample;
  bool made = at_->rank == (first_rank + steps) % lines_;
  for (std::size_t t = 0; t < traffic.size(); ++t) {
    made = made && traffic[t].all_made();
    sample.traffic_bytes_per_s += rate(traffic[t].bytes(), run->members[t + 1]);
  }
  if (!made)
    return Error::make(Errc::failed_check, "not every load of the loaded probe was made")
        .try_next("report this: the timed loop is broken on this machine");
  const kernels::Member& chaser = run->members[0];
  sample.latency_ns =
      static_cast<double>(chaser.end_ns - chaser.start_ns) / static_cast<double>(steps);
  sample.chaser_bytes_per_s = rate(steps * os::cache_line_bytes, chaser);
  sample.members = std::move(run->members);
  return sample;
}

} // namespace nearfar::probe
