// What a channel has done: commands, open rows, and the list of commands if it is recorded.
//
// Thread safety  one thread.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/bank_work.hpp"
#include "sim/channel_timing.hpp"
#include "sim/command.hpp"

namespace nearfar::sim {

class ChannelStatistics {
public:
  ChannelStatistics(const ChannelTiming& timing, std::uint32_t channel)
      : open_(timing.ranks().size()), channel_(channel) {
    const std::uint32_t per_group = timing.banks_per_group();
    for (std::uint32_t i = 0; i < timing.banks().size(); ++i)
      banks_.push_back({channel, timing.bank(i).rank, timing.group_in_rank(timing.bank(i)),
                        i % per_group, 0, 0, 0, 0});
  }

  const Work& work() const { return work_; }
  const std::vector<BankWork>& banks() const { return banks_; }

  /// Appends every command to `commands`, until called with nullptr.
  void record(std::vector<Command>* commands) { commands_ = commands; }

  /// Called after the command, for it shows the open row.
  void activated(const ChannelTiming& timing, std::uint32_t number, Time at) {
    const ChannelTiming::Bank& bank = timing.bank(number);
    OpenTime& open = open_[bank.rank];
    if (timing.ranks()[bank.rank].open_rows == 1 && at > open.until) {
      work_.active += open.until - open.since;
      open.since = at;
    }
    ++work_.activates;
    ++banks_[number].activates;
    log(Act::activate, timing, number, at, false);
  }

  /// Called before the command.
  void precharging(const ChannelTiming& timing, std::uint32_t number, Time at, bool automatic) {
    log(Act::precharge, timing, number, at, automatic);
    const ChannelTiming::Bank& bank = timing.bank(number);
    if (bank.dirty) ++work_.array_writes;
    open_[bank.rank].until = std::max(open_[bank.rank].until, at);
  }

  /// `number`: one of the banks that are refreshed.
  void refreshed(const ChannelTiming& timing, std::uint32_t number, Time at) {
    ++work_.refreshes;
    log(Act::refresh, timing, number, at, false);
  }

  void column(const ChannelTiming& timing, const ChannelRequest& request, Time at) {
    log(request.write ? Act::write : Act::read, timing, request.place.bank, at, false);
    ++(request.write ? work_.writes : work_.reads);
    work_.row_hits += !request.opened;
    BankWork& bank = banks_[request.place.bank];
    ++(request.write ? bank.writes : bank.reads);
    bank.row_hits += !request.opened;
  }

  /// Called after a rank went to sleep; `number`: its first bank.
  void asleep(const ChannelTiming& timing, std::uint32_t number, Time at) {
    const bool refreshes =
        timing.ranks()[timing.bank(number).rank].state == RankState::self_refresh;
    log(refreshes ? Act::self_refresh : Act::power_down, timing, number, at, false);
  }
  /// Called before a rank wakes.
  void waking(const ChannelTiming& timing, std::uint32_t number, Time at) {
    log(Act::wake, timing, number, at, false);
    slept(timing.ranks()[timing.bank(number).rank], at);
  }

  /// The run has ended.
  void finish_rank(const ChannelTiming& timing, std::uint32_t number, Time end) {
    const ChannelTiming::Rank& rank = timing.ranks()[number];
    OpenTime& open = open_[number];
    if (rank.open_rows) open.until = std::max(open.until, end);
    work_.active += open.until - open.since;
    open.since = open.until;
    if (rank.state != RankState::awake) slept(rank, std::max(end, rank.asleep_since));
  }
  /// Dirty rows that are still open are written to the array.
  void finish_banks(const ChannelTiming& timing) {
    for (const ChannelTiming::Bank& bank : timing.banks())
      work_.array_writes += bank.row != no_row && bank.dirty;
  }

private:
  /// The time in which a rank has open rows, as far as `work_` does not include it.
  struct OpenTime {
    Time since = 0;
    Time until = 0;
  };

  /// A rank is asleep until `at`.
  void slept(const ChannelTiming::Rank& rank, Time at) {
    const Time time = at - rank.asleep_since;
    if (rank.state == RankState::self_refresh)
      work_.self_refresh += time;
    else
      (rank.open_rows ? work_.active_power_down : work_.power_down) += time;
  }

  void log(Act act, const ChannelTiming& timing, std::uint32_t number, Time at, bool automatic) {
    if (!commands_) return;
    const ChannelTiming::Bank& bank = timing.bank(number);
    commands_->push_back(
        {at, act, automatic, channel_, bank.rank, timing.group_in_rank(bank), number, bank.row});
  }

  Work work_;
  std::vector<BankWork> banks_;
  std::vector<OpenTime> open_; ///< by rank
  std::uint32_t channel_;
  std::vector<Command>* commands_ = nullptr;
};

} // namespace nearfar::sim
