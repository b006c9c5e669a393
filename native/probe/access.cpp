#include "probe/access.hpp"

#include <algorithm>

#include "base/random.hpp"
#include "os/clock.hpp"
#include "os/cpu.hpp"

namespace nearfar::probe {

namespace {

/// Accesses between two looks at the clock: some tens of microseconds.
constexpr std::size_t accesses_between_looks(std::size_t block_bytes) {
  return std::max<std::size_t>(std::size_t{1 << 20} / block_bytes / 4, 64);
}

} // namespace

Status check_pattern(const AccessPattern& p, std::size_t bytes) {
  const bool whole_lines = p.block_bytes > 0 && p.block_bytes % os::cache_line_bytes == 0;
  const bool strided = p.order == kernels::Order::strided;
  const bool stride_fits =
      !strided || (p.stride_bytes >= p.block_bytes && p.stride_bytes % p.block_bytes == 0 &&
                   p.stride_bytes < bytes);
  if (whole_lines && stride_fits && p.block_bytes <= bytes && p.reads + p.writes > 0) return Done{};
  return Error::make(Errc::bad_input,
                     "accesses of %zu bytes, %zu bytes apart, do not fit %zu bytes of memory",
                     p.block_bytes, p.stride_bytes, bytes)
      .try_next("a block is whole lines of 64 bytes, a stride whole blocks");
}

kernels::AccessLoop loop_over(const AccessPattern& p, std::byte* base, std::size_t bytes,
                              std::uint64_t seed) {
  kernels::AccessLoop loop;
  loop.base = base;
  loop.blocks = bytes / p.block_bytes;
  loop.block_lines = p.block_bytes / os::cache_line_bytes;
  loop.order = p.order;
  loop.stride = std::max<std::size_t>(p.stride_bytes / p.block_bytes, 1);
  loop.reads = p.reads;
  loop.writes = p.writes;
  loop.nontemporal = p.nontemporal;
  loop.state = p.order == kernels::Order::random ? Random(seed).next() : 0;
  return loop;
}

AccessProbe::AccessProbe(tier::Mapping mapping) : mapping_(std::move(mapping)) {}

Result<AccessProbe> AccessProbe::create(const tier::Spec& spec, std::size_t bytes,
                                        std::span<const int> cpus) {
  Result<tier::Mapping> mapping = tier::map(spec, bytes);
  if (!mapping) return mapping.error();
  const std::size_t lines = bytes / os::cache_line_bytes;
  Result<kernels::TeamRun> touched = kernels::run_team(cpus, [&](std::size_t member) {
    const std::size_t first = lines * member / cpus.size();
    const std::size_t end = lines * (member + 1) / cpus.size();
    kernels::fill_lines(mapping->data() + first * os::cache_line_bytes, end - first);
  });
  if (!touched) return touched.error();
  if (Status pages = tier::verify_pages(spec, *mapping); !pages) return pages.error();
  return AccessProbe(std::move(*mapping));
}

Result<AccessRun> AccessProbe::run(const AccessPattern& pattern, std::span<const int> cpus,
                                   std::uint64_t nanoseconds, std::uint64_t seed) {
  const std::size_t slice =
      mapping_.range.size() / cpus.size() / pattern.block_bytes * pattern.block_bytes;
  if (Status fits = check_pattern(pattern, slice); !fits) return fits.error();
  const std::size_t round = accesses_between_looks(pattern.block_bytes);
  const std::size_t group = pattern.reads + pattern.writes;
  const std::size_t accesses_a_round = (round + group - 1) / group * group;
  const auto slice_of = [&](std::size_t member) { return mapping_.data() + member * slice; };
  // Numbers depend on the place in a slice, and slices on the number of threads.
  Result<kernels::TeamRun> filled = kernels::run_team(cpus, [&](std::size_t member) {
    kernels::fill_lines(slice_of(member), slice / os::cache_line_bytes);
  });
  if (!filled) return filled.error();
  std::vector<std::uint64_t> sums(cpus.size());
  std::vector<std::size_t> rounds(cpus.size());
  Result<kernels::TeamRun> run = kernels::run_team(cpus, [&](std::size_t member) {
    kernels::AccessLoop loop = loop_over(pattern, slice_of(member), slice, seed + member);
    const std::uint64_t start = os::now_ns();
    while (os::now_ns() - start < nanoseconds) {
      sums[member] += kernels::run_accesses(loop, accesses_a_round);
      ++rounds[member];
    }
  });
  if (!run) return run.error();
  AccessRun result;
  for (std::size_t member = 0; member < cpus.size(); ++member) {
    kernels::AccessLoop loop = loop_over(pattern, slice_of(member), slice, seed + member);
    std::uint64_t expected = 0;
    for (std::size_t r = 0; r < rounds[member]; ++r)
      expected += kernels::expected_sum(loop, accesses_a_round);
    if (expected != sums[member])
      return Error::make(Errc::failed_check, "not every access of the pattern was made")
          .try_next("report this: the timed loop is broken on this machine");
    result.bytes += rounds[member] * accesses_a_round * pattern.block_bytes;
  }
  result.seconds = run->seconds();
  result.members = std::move(run->members);
  return result;
}

} // namespace nearfar::probe
