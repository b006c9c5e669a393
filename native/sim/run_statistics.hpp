// Counters of a run: requests, latencies, stalls, wear.
//
// Thread safety  one thread.
#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include "sim/simulate.hpp"

namespace nearfar::sim {

class RunStatistics {
public:
  void add_requests(std::uint64_t count) { outcome_.requests += count; }

  /// Counts a request of the program. Reads and writes that it causes are not counted here.
  void request(bool near, bool write, Time gap) {
    outcome_.compute += gap;
    TierOutcome& tier = outcome_.tiers[near];
    ++(write ? tier.writes : tier.reads);
  }
  /// Counts a read of the program that is sent at `sent` and ends at `end`.
  void read(bool near, Time gap, Time sent, Time end) {
    outcome_.compute += gap;
    TierOutcome& tier = outcome_.tiers[near];
    ++tier.reads;
    tier.access_ended(end);
    tier.read_ended(end - sent);
  }
  void stalled(Time stall) { outcome_.stall += stall; }

  /// Does not count writes to each line from now on.
  void ignore_wear() { counts_wear_ = false; }

  void prefetch_wear(bool near, std::uint64_t line) { wear_[near].prefetch(line); }
  void written(bool near, std::uint64_t line) {
    if (counts_wear_) wear_[near].write(line);
  }

  void read_ended(bool near, Time latency) { outcome_.tiers[near].read_ended(latency); }
  /// Records the end of an access or of a posted write.
  void ended(bool near, Time at) { outcome_.tiers[near].access_ended(at); }
  /// Adds the counters of a lane.
  void add(bool near, const AccessTimes& times) {
    static_cast<AccessTimes&>(outcome_.tiers[near]) += times;
  }

  /// Records that the program ends at `now`, `tail` after its last request. Returns the end of the
  /// run: the later of `now` and the end of the last access.
  Time finish(Time now, Time tail, std::uint64_t moved_pages) {
    outcome_.compute += tail;
    outcome_.end = std::max({now, outcome_.tiers[0].last, outcome_.tiers[1].last});
    outcome_.moved_pages = moved_pages;
    return outcome_.end;
  }
  void finish_tier(bool near, const Device& device, const Activity& activity,
                   std::vector<BankActivity> banks) {
    TierOutcome& tier = outcome_.tiers[near];
    tier.activity = activity;
    tier.banks = std::move(banks);
    tier.energy = energy_of(device, activity, outcome_.end);
    tier.wear = wear_[near].summary();
  }
  Outcome outcome() && { return std::move(outcome_); }

private:
  Outcome outcome_;
  std::array<Wear, 2> wear_; ///< far, near
  bool counts_wear_ = true;
};

} // namespace nearfar::sim
