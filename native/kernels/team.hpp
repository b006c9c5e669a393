// A team of pinned threads that start a timed loop together.
//
// Each member pins itself, waits at a spinning barrier, runs its work once, and records its start,
// its end and its usage. The span of the team is from the first start to the last end. The barrier
// yields, so a team with more members than CPUs is slow, but makes progress.
//
// Thread safety  run_team is called by one thread; `work` runs on all members at once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "os/usage.hpp"

namespace nearfar::kernels {

struct Member {
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
  os::Usage usage;
};

struct TeamRun {
  std::vector<Member> members; ///< one for each processor, in the order given
  double seconds() const;      ///< first start to last end
};

/// Runs work(member index) once on each processor of `cpus` (non-empty). Fails with bad_input where
/// a processor cannot be used; then no work was run.
Result<TeamRun> run_team(std::span<const int> cpus, const std::function<void(std::size_t)>& work);

} // namespace nearfar::kernels
