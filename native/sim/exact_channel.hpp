// One channel of the exact engine: issues commands.
//
// Scheduling     channel_scheduler.hpp, row_policy.hpp, refresh_manager.hpp, power_manager.hpp.
// Events         Time advances from one command to the next. Only earlier commands determine when a
//                command is legal (channel_timing.hpp).
// Thread safety  one thread.
#pragma once

#include <optional>
#include <vector>

#include "sim/channel_scheduler.hpp"
#include "sim/channel_statistics.hpp"

namespace nearfar::sim {

class ExactChannel {
public:
  ExactChannel(const Device& device, const Controller& controller, std::uint32_t number);

  /// Queues a request that arrives at `at`, which may be in the future. step() returns its
  /// completion.
  void demand(std::uint64_t id, Time at, const DramAddress& address, bool write);

  /// Queues a posted write: its sender does not wait. Requires has_room().
  void post(Time at, const DramAddress& address);
  bool has_room() const { return queues_.posted().size() < scheduler_.max_posted(); }

  /// Every posted write is drained from now on if no demand waits.
  void flush() {
    scheduler_.flush();
    chosen_ = false;
  }

  /// Time of the next command; `never` without a demand and without a drain.
  Time next() {
    if (!chosen_) choose();
    return choice_.at;
  }

  /// Issues the next command. Returns a completion if it is the column command of a demand.
  std::optional<Completion> step();

  /// Issues the commands that serve no request until `end`, then completes the statistics.
  void finish(Time end);

  const Activity& activity() const { return statistics_.activity(); }
  const std::vector<BankActivity>& banks() const { return statistics_.banks(); }

  /// Appends each issued command to `out`; nullptr ends recording.
  void record(std::vector<Command>* out) { statistics_.record(out); }

private:
  void choose();
  void add(bool posted, std::uint64_t id, Time at, const DramAddress& address, bool write);
  std::optional<Completion> issue(ChannelCandidate choice);
  void precharge(std::uint32_t bank, Time at, bool automatic);
  void sleep(std::uint32_t rank, RankState state, Time at);
  void wake(std::uint32_t rank, Time at);
  Completion column(const ChannelCandidate& choice);

  ChannelTiming timing_;
  RequestQueues queues_;
  RefreshManager refreshes_;
  RowPolicy rows_;
  ChannelScheduler scheduler_;
  ChannelStatistics statistics_;
  ChannelCandidate choice_;
  bool chosen_ = false; ///< `choice_` is the next command
};

} // namespace nearfar::sim
