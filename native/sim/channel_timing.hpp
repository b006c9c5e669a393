// Timing state of a channel: the earliest time of each command after the commands issued so far.
//
// Thread safety  one thread.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "sim/command.hpp"
#include "sim/request_queues.hpp"

namespace nearfar::sim {

inline constexpr std::uint64_t no_row = ~std::uint64_t{0};

enum class RankState : unsigned char { awake, power_down, self_refresh };

/// At most `count` activates of a rank in any window of a given length (tFAW, t32AW).
template <std::size_t count>
class ActivateWindow {
public:
  void activate(Time leaves) {
    leaves_[oldest_] = leaves;
    oldest_ = (oldest_ + 1) % count;
  }
  Time activate_from() const { return leaves_[oldest_]; }

private:
  std::array<Time, count> leaves_{}; ///< by activate: end of its window
  std::size_t oldest_ = 0;
};

class ChannelTiming {
public:
  struct Bank {
    std::uint64_t row = no_row; ///< the open row
    Time activate_from = 0;
    Time read_from = 0;
    Time write_from = 0;
    Time precharge_from = 0;
    Time last_used = 0; ///< when its last activate or column command was issued
    std::uint32_t rank = 0;
    std::uint32_t group = 0;   ///< number in the channel, over all ranks
    std::uint32_t columns = 0; ///< column commands to the open row
    bool dirty = false;
  };
  struct Rank {
    Time activate_from = 0;
    ActivateWindow<4> four;
    ActivateWindow<32> thirty_two;
    Time read_from = 0;
    Time array_write_from = 0;
    unsigned open_rows = 0;
    RankState state = RankState::awake;
    Time awake_from = 0; ///< earliest command after the rank woke; `never` unless awake
    Time asleep_since = 0;
    Time busy_until = 0; ///< end of the last command
    Time used_until = 0; ///< end of the last request
  };

  explicit ChannelTiming(const Device& device)
      : timing_(device.timing),
        groups_per_rank_(static_cast<std::uint32_t>(device.organization.groups)),
        column_bus_(device.organization.command_buses - 1),
        long_command_(device.organization.command_clocks * device.timing.clock) {
    const auto banks = static_cast<std::uint32_t>(device.organization.banks);
    const auto ranks = static_cast<std::uint32_t>(device.organization.ranks);
    banks_.resize(std::size_t{ranks} * groups_per_rank_ * banks);
    for (std::uint32_t i = 0; i < banks_.size(); ++i) {
      banks_[i].rank = i / (groups_per_rank_ * banks);
      banks_[i].group = i / banks;
    }
    groups_.resize(std::size_t{ranks} * groups_per_rank_);
    ranks_.resize(ranks);
  }

  const Timing& timing() const { return timing_; }
  const std::vector<Bank>& banks() const { return banks_; }
  const Bank& bank(std::uint32_t number) const { return banks_[number]; }
  const std::vector<Rank>& ranks() const { return ranks_; }
  std::uint32_t banks_per_rank() const {
    return static_cast<std::uint32_t>(banks_.size() / ranks_.size());
  }
  std::uint32_t banks_per_group() const { return banks_per_rank() / groups_per_rank_; }
  std::uint32_t group_in_rank(const Bank& bank) const { return bank.group % groups_per_rank_; }

  /// The first clock edge at or after `at`.
  Time clock_edge(Time at) const { return timing_.whole_clocks(at); }
  /// Time at which the command bus is free for a row command and for a column command. A channel
  /// may have a bus for each.
  Time row_command_from() const { return command_from_[0]; }
  Time column_command_from() const { return command_from_[column_bus_]; }

  Time column_time(const ChannelRequest& request) const {
    const Bank& bank = banks_[request.address.bank];
    const Group& group = groups_[bank.group];
    const Time lead = request.write ? timing_.CWL : timing_.CL;
    Time from = std::max(group.column_from, column_from_);
    if (request.write)
      from = std::max({from, bank.write_from, group.write_from, ranks_[bank.rank].awake_from});
    else
      from = std::max({from, bank.read_from, group.read_from, ranks_[bank.rank].read_from,
                       ranks_[bank.rank].awake_from});
    const bool turns = bank.rank != data_rank_ || request.write != data_write_;
    const Time data_from = data_until_ ? data_until_ + (turns ? timing_.tRTRS : 0) : 0;
    return std::max(from, data_from > lead ? data_from - lead : 0);
  }
  Time activate_time(const Bank& bank) const {
    const Rank& rank = ranks_[bank.rank];
    return std::max({bank.activate_from, groups_[bank.group].activate_from, rank.activate_from,
                     rank.awake_from, rank.four.activate_from(), rank.thirty_two.activate_from()});
  }
  Time precharge_time(const Bank& bank) const {
    const Rank& rank = ranks_[bank.rank];
    const Time from = std::max(bank.precharge_from, rank.awake_from);
    return bank.dirty ? std::max(from, rank.array_write_from) : from;
  }

  void occupy_command_bus(CommandType type, Time at) {
    if (type == CommandType::power_down || type == CommandType::wake)
      return; // they use the CKE signal
    const bool column = type == CommandType::read || type == CommandType::write;
    const bool is_long = column || type == CommandType::activate;
    command_from_[column ? column_bus_ : 0] = at + (is_long ? long_command_ : timing_.clock);
  }

  void activate(std::uint32_t number, std::uint64_t row, Time at) {
    Bank& bank = banks_[number];
    Rank& rank = ranks_[bank.rank];
    bank.row = row;
    bank.dirty = false;
    bank.columns = 0;
    bank.read_from = at + timing_.tRCD;
    bank.write_from = at + timing_.tRCDWR;
    bank.precharge_from = at + timing_.tRAS;
    bank.last_used = at;
    groups_[bank.group].activate_from = at + timing_.tRRDL;
    rank.activate_from = at + timing_.tRRD;
    rank.four.activate(at + timing_.tFAW);
    rank.thirty_two.activate(at + timing_.t32AW);
    ++rank.open_rows;
    rank.busy_until = std::max(rank.busy_until, bank.read_from);
  }

  void precharge(std::uint32_t number, Time at) {
    Bank& bank = banks_[number];
    Rank& rank = ranks_[bank.rank];
    if (bank.dirty) rank.array_write_from = at + timing_.tRRDpre;
    bank.activate_from = at + (bank.dirty ? timing_.tRP : timing_.tRPclean);
    bank.row = no_row;
    bank.dirty = false;
    --rank.open_rows;
    rank.busy_until = std::max(rank.busy_until, bank.activate_from);
  }

  void refresh(std::uint32_t number, Time at) {
    Bank& bank = banks_[number];
    bank.activate_from = at + timing_.tRFC;
    ranks_[bank.rank].busy_until = std::max(ranks_[bank.rank].busy_until, bank.activate_from);
  }

  void sleep(std::uint32_t number, RankState state, Time at) {
    Rank& rank = ranks_[number];
    rank.state = state;
    rank.asleep_since = at;
    rank.awake_from = never;
  }
  void wake(std::uint32_t number, Time at) {
    Rank& rank = ranks_[number];
    rank.awake_from = at + (rank.state == RankState::self_refresh ? timing_.tXS : timing_.tXP);
    rank.state = RankState::awake;
    rank.busy_until = rank.awake_from;
  }

  /// Returns the end of the access: of the data (read), or of write recovery.
  Time column(const ChannelRequest& request, Time at) {
    Bank& bank = banks_[request.address.bank];
    Group& group = groups_[bank.group];
    const Time end = at + (request.write ? timing_.CWL : timing_.CL) + timing_.burst;
    column_from_ = at + timing_.tCCD;
    group.column_from = at + timing_.tCCDL;
    data_until_ = end;
    data_rank_ = bank.rank;
    data_write_ = request.write;
    bank.last_used = at;
    ++bank.columns;
    Rank& rank = ranks_[bank.rank];
    const Time recovered = end + (request.write ? timing_.tWR : 0);
    rank.used_until = rank.busy_until = std::max(rank.busy_until, recovered);
    if (!request.write) {
      bank.precharge_from = std::max(bank.precharge_from, at + timing_.tRTP);
      return end;
    }
    bank.dirty = true;
    bank.precharge_from = std::max(bank.precharge_from, recovered);
    rank.read_from = end + timing_.tWTR;
    group.read_from = end + timing_.tWTRL;
    group.write_from = at + timing_.tCCDLWR;
    return recovered;
  }

private:
  struct Group {
    Time activate_from = 0;
    Time column_from = 0;
    Time read_from = 0;
    Time write_from = 0;
  };

  Timing timing_;
  std::uint32_t groups_per_rank_;
  std::vector<Bank> banks_;
  std::vector<Group> groups_; ///< rank * groups_per_rank + group
  std::vector<Rank> ranks_;
  std::size_t column_bus_;             ///< index in command_from_
  Time long_command_;                  ///< time of an activate, read or write on the command bus
  std::array<Time, 2> command_from_{}; ///< by command bus: when it is free
  Time column_from_ = 0;
  Time data_until_ = 0; ///< end of the last data on the data bus
  std::uint32_t data_rank_ = 0;
  bool data_write_ = false;
};

} // namespace nearfar::sim
