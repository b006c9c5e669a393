// Explores the log of a program whose threads run on two hosts that share the pool.
#pragma once

#include <array>
#include <vector>

#include "base/result.hpp"
#include "crash/explorer.hpp"

namespace nearfar::crash {

/// The crashes that two hosts can have, in the order in which they are explored.
inline constexpr std::array crashes_of_two_hosts{CacheLoss::host_0, CacheLoss::host_1,
                                                 CacheLoss::all, CacheLoss::none};

/// What one of these leaves.
struct CrashCount {
  CacheLoss loss = CacheLoss::all;
  std::uint64_t states = 0;
  double states_left = 0;
  std::uint64_t violations = 0;
};

struct HostExploration {
  Exploration all; ///< a store was tried if each crash tried it
  std::vector<CrashCount> counts;
};

/// Error: nothing was done on the second host.
Status expect_two_hosts(const storelog::Log& log);
/// Takes the hosts out of a log: one host has run everything.
void run_on_one_host(storelog::Log& log);

/// Each kind of crash has an equal part of the budget, and what those before it left.
HostExploration explore_hosts(Checked& checked, Arena& arena, const Trace& trace, Options options,
                              const std::function<void(const Progress&)>& progress);

} // namespace nearfar::crash
