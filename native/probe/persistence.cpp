#include "probe/persistence.hpp"

#include <algorithm>
#include <cstring>

#include "base/random.hpp"
#include "kernels/team.hpp"
#include "os/clock.hpp"
#include "os/cpu.hpp"
#include "os/pages.hpp"
#include "os/tsc.hpp"

namespace nearfar::probe {

namespace {

constexpr std::size_t fences_between_looks = 64;
constexpr std::size_t page = 4096;
constexpr std::uint64_t stall_factor = 20; // of the median: far outside any cache or DRAM effect

Error stores_missing() {
  return Error::make(Errc::failed_check, "stores that were timed are not in memory")
      .try_next("report this: the timed loop is broken on this machine");
}

/// Writes longer than a threshold: how many, how long, how far apart.
void find_stalls(const std::vector<std::uint64_t>& ticks, OverwriteRun& run) {
  const std::uint64_t limit = run.ticks.percentile(0.5) * stall_factor;
  std::vector<std::uint64_t> stalls;
  std::size_t first = 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    if (ticks[i] <= limit) continue;
    if (stalls.empty()) first = i;
    last = i;
    stalls.push_back(ticks[i]);
  }
  run.stalls = stalls.size();
  if (stalls.empty()) return;
  std::nth_element(stalls.begin(), stalls.begin() + static_cast<std::ptrdiff_t>(stalls.size() / 2),
                   stalls.end());
  run.stall_ns = static_cast<double>(stalls[stalls.size() / 2]) * run.tick_ns;
  if (stalls.size() > 1)
    run.writes_between = static_cast<double>(last - first) / static_cast<double>(stalls.size() - 1);
}

} // namespace

PersistenceProbe::PersistenceProbe(tier::Mapping mapping, int cpu)
    : mapping_(std::move(mapping)), cpu_(cpu) {}

Result<PersistenceProbe> PersistenceProbe::create(const tier::Spec& spec, std::size_t bytes,
                                                  int cpu) {
  Result<tier::Mapping> mapping = tier::map(spec, bytes);
  if (!mapping) return mapping.error();
  Result<kernels::TeamRun> touched =
      kernels::run_team({&cpu, 1}, [&](std::size_t) { os::prefault(mapping->range); });
  if (!touched) return touched.error();
  if (Status pages = tier::verify_pages(spec, *mapping); !pages) return pages.error();
  return PersistenceProbe(std::move(*mapping), cpu);
}

Result<kernels::PersistLoop> PersistenceProbe::loop_for(os::Persist how, std::size_t block_bytes) {
  if (!os::can_persist(how))
    return Error::make(Errc::unsupported, "this processor lacks the instruction")
        .try_next("choose another way to persist");
  if (block_bytes == 0 || block_bytes % os::cache_line_bytes != 0 ||
      block_bytes > mapping_.range.size())
    return Error::make(Errc::bad_input, "blocks of %zu bytes cannot be persisted", block_bytes)
        .try_next("a block is whole lines of 64 bytes");
  kernels::PersistLoop loop;
  loop.base = mapping_.data();
  loop.block_lines = block_bytes / os::cache_line_bytes;
  loop.blocks = mapping_.range.size() / block_bytes;
  loop.how = how;
  loop.state = state_;
  loop.stamp = stamp_;
  return loop;
}

Result<PersistSample> PersistenceProbe::sample(os::Persist how, std::size_t block_bytes,
                                               std::size_t blocks_per_fence,
                                               std::uint64_t nanoseconds) {
  Result<kernels::PersistLoop> loop = loop_for(how, block_bytes);
  if (!loop) return loop.error();
  loop->blocks_per_fence = std::max<std::size_t>(blocks_per_fence, 1);
  PersistSample sample;
  std::uint64_t elapsed_ns = 0;
  Result<kernels::TeamRun> run = kernels::run_team({&cpu_, 1}, [&](std::size_t) {
    const std::uint64_t start = os::now_ns();
    for (; elapsed_ns < nanoseconds; elapsed_ns = os::now_ns() - start) {
      kernels::run_persists(*loop, fences_between_looks);
      sample.fences += fences_between_looks;
    }
  });
  if (!run) return run.error();
  if (kernels::count_stamped_after(*loop, loop->stamp - 1) == 0 ||
      loop->stamp != stamp_ + sample.fences)
    return stores_missing();
  stamp_ = loop->stamp;
  state_ = loop->state;
  sample.fence_ns = static_cast<double>(elapsed_ns) / static_cast<double>(sample.fences);
  sample.usage = run->members[0].usage;
  return sample;
}

Result<PersistSample> PersistenceProbe::sample_msync(std::size_t block_bytes,
                                                     std::uint64_t nanoseconds) {
  if (block_bytes == 0 || block_bytes > mapping_.range.size())
    return Error::make(Errc::bad_input, "blocks of %zu bytes cannot be synced", block_bytes);
  const std::size_t stride = (block_bytes + page - 1) / page * page; // msync works on whole pages
  const std::size_t places = mapping_.range.size() / stride;
  Random random(state_++);
  PersistSample sample;
  std::uint64_t elapsed_ns = 0;
  Error error;
  bool failed = false;
  Result<kernels::TeamRun> run = kernels::run_team({&cpu_, 1}, [&](std::size_t) {
    const std::uint64_t start = os::now_ns();
    for (; elapsed_ns < nanoseconds && !failed; elapsed_ns = os::now_ns() - start) {
      std::byte* block = mapping_.data() + random.below(places) * stride;
      std::memset(block, static_cast<int>(++stamp_ & 0xff), block_bytes);
      if (Status synced = os::sync_range(block, stride); !synced) {
        error = synced.error();
        failed = true;
      }
      ++sample.fences;
    }
  });
  if (!run) return run.error();
  if (failed) return error;
  sample.fence_ns = static_cast<double>(elapsed_ns) / static_cast<double>(sample.fences);
  sample.usage = run->members[0].usage;
  return sample;
}

Result<OverwriteRun> PersistenceProbe::overwrite(os::Persist how, std::size_t block_bytes,
                                                 std::size_t writes) {
  Result<kernels::PersistLoop> loop = loop_for(how, block_bytes);
  if (!loop) return loop.error();
  loop->blocks = 1;
  OverwriteRun result;
  result.tick_ns = os::tsc_tick_ns();
  std::vector<std::uint64_t> ticks(writes);
  Result<kernels::TeamRun> run = kernels::run_team({&cpu_, 1}, [&](std::size_t) {
    const std::uint64_t own = os::tsc_own_ticks();
    for (std::uint64_t& t : ticks) {
      const std::uint64_t start = os::tsc_begin();
      kernels::run_persists(*loop, 1);
      const std::uint64_t took = os::tsc_end() - start;
      t = took > own ? took - own : 0;
    }
  });
  if (!run) return run.error();
  if (kernels::count_stamped_after(*loop, loop->stamp - 1) != loop->block_lines)
    return stores_missing();
  stamp_ = loop->stamp;
  for (const std::uint64_t t : ticks)
    result.ticks.record(t);
  find_stalls(ticks, result);
  result.usage = run->members[0].usage;
  return result;
}

} // namespace nearfar::probe
