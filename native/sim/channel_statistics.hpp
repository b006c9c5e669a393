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

  /// The run has ended; `refreshes` of a rank, the first due at `due`, were not issued.
  void finish_rank(const ChannelTiming& timing, std::uint32_t rank, Time end, Time due,
                   std::uint64_t refreshes) {
    OpenTime& open = open_[rank];
    if (timing.ranks()[rank].open_rows) // until the refresh that closes them
      open.until = std::max(open.until, std::min(end, due));
    work_.active += open.until - open.since;
    open.since = open.until;
    work_.refreshes += refreshes;
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
