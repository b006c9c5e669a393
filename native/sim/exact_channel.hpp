// The exact engine: one channel, command by command.
//
// Scheduling     channel_scheduler.hpp, row_policy.hpp, refresh_manager.hpp.
// Events         the clock advances from command to command. Whether a command is legal depends on
//                the commands before it (channel_timing.hpp), never on later ones.
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

  /// A request that arrives at `at`, which may lie ahead. step() returns its completion.
  void demand(std::uint64_t id, Time at, const Place& place, bool write);

  /// A write whose sender does not wait; only while has_room().
  void post(Time at, const Place& place);
  bool has_room() const { return queues_.posted().size() < scheduler_.max_posted(); }

  /// From now on any posted write is issued while no demand waits.
  void flush() {
    scheduler_.flush();
    chosen_ = false;
  }

  /// When the next command is issued; `never` if no request waits.
  Time next() {
    if (!chosen_) choose();
    return choice_.at;
  }

  /// Issues the next command; a completion if it was the column command of a demand.
  std::optional<Completion> step();

  /// Completes the statistics until `end`.
  void finish(Time end);

  const Work& work() const { return statistics_.work(); }
  const std::vector<BankWork>& banks() const { return statistics_.banks(); }

  /// Appends every command to `out`, until called with nullptr.
  void record(std::vector<Command>* out) { statistics_.record(out); }

private:
  void choose();
  void add(bool posted, std::uint64_t id, Time at, const Place& place, bool write);
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
