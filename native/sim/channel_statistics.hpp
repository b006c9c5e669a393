// Statistics of a channel: commands, time with open rows, and the recorded commands.
//
// Thread safety  one thread.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/bank_activity.hpp"
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

  const Activity& activity() const { return activity_; }
  const std::vector<BankActivity>& banks() const { return banks_; }

  /// Appends each command to `commands`; nullptr ends recording.
  void record(std::vector<Command>* commands) { commands_ = commands; }

  /// Called after ChannelTiming::activate(), which sets the open row.
  void activated(const ChannelTiming& timing, std::uint32_t number, Time at) {
    const ChannelTiming::Bank& bank = timing.bank(number);
    OpenTime& open = open_[bank.rank];
    if (timing.ranks()[bank.rank].open_rows == 1 && at > open.until) {
      activity_.active += open.until - open.since;
      open.since = at;
    }
    ++activity_.activates;
    ++banks_[number].activates;
    log(CommandType::activate, timing, number, at, false);
  }

  /// Called before ChannelTiming::precharge(), which clears the open row.
  void precharging(const ChannelTiming& timing, std::uint32_t number, Time at, bool automatic) {
    log(CommandType::precharge, timing, number, at, automatic);
    const ChannelTiming::Bank& bank = timing.bank(number);
    if (bank.dirty) ++activity_.array_writes;
    open_[bank.rank].until = std::max(open_[bank.rank].until, at);
  }

  /// `number`: a bank of the set.
  void refreshed(const ChannelTiming& timing, std::uint32_t number, Time at) {
    ++activity_.refreshes;
    log(CommandType::refresh, timing, number, at, false);
  }

  void column(const ChannelTiming& timing, const ChannelRequest& request, Time at) {
    log(request.write ? CommandType::write : CommandType::read, timing, request.address.bank, at,
        false);
    ++(request.write ? activity_.writes : activity_.reads);
    activity_.row_hits += !request.caused_activate;
    BankActivity& bank = banks_[request.address.bank];
    ++(request.write ? bank.writes : bank.reads);
    bank.row_hits += !request.caused_activate;
  }

  /// Called after a rank entered power-down or self-refresh. `number`: its first bank.
  void asleep(const ChannelTiming& timing, std::uint32_t number, Time at) {
    const bool refreshes =
        timing.ranks()[timing.bank(number).rank].state == RankState::self_refresh;
    log(refreshes ? CommandType::self_refresh : CommandType::power_down, timing, number, at, false);
  }
  /// Called before the rank wakes. `number`: its first bank.
  void waking(const ChannelTiming& timing, std::uint32_t number, Time at) {
    log(CommandType::wake, timing, number, at, false);
    slept(timing.ranks()[timing.bank(number).rank], at);
  }

  /// Adds the times of a rank until the end of the run.
  void finish_rank(const ChannelTiming& timing, std::uint32_t number, Time end) {
    const ChannelTiming::Rank& rank = timing.ranks()[number];
    OpenTime& open = open_[number];
    if (rank.open_rows) open.until = std::max(open.until, end);
    activity_.active += open.until - open.since;
    open.since = open.until;
    if (rank.state != RankState::awake) slept(rank, std::max(end, rank.asleep_since));
  }
  /// Counts the array writes of dirty rows that are still open.
  void finish_banks(const ChannelTiming& timing) {
    for (const ChannelTiming::Bank& bank : timing.banks())
      activity_.array_writes += bank.row != no_row && bank.dirty;
  }

private:
  /// The last time in which a rank had open rows. Not yet added to `activity_`.
  struct OpenTime {
    Time since = 0;
    Time until = 0;
  };

  /// Adds the time of a rank in its power state until `at`.
  void slept(const ChannelTiming::Rank& rank, Time at) {
    const Time time = at - rank.asleep_since;
    if (rank.state == RankState::self_refresh)
      activity_.self_refresh += time;
    else
      (rank.open_rows ? activity_.active_power_down : activity_.power_down) += time;
  }

  void log(CommandType type, const ChannelTiming& timing, std::uint32_t number, Time at,
           bool automatic) {
    if (!commands_) return;
    const ChannelTiming::Bank& bank = timing.bank(number);
    commands_->push_back(
        {at, type, automatic, channel_, bank.rank, timing.group_in_rank(bank), number, bank.row});
  }

  Activity activity_;
  std::vector<BankActivity> banks_;
  std::vector<OpenTime> open_; ///< by rank
  std::uint32_t channel_;
  std::vector<Command>* commands_ = nullptr;
};

} // namespace nearfar::sim
