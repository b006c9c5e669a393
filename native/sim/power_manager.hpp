// Power states of the ranks of a channel: when they power down, enter self-refresh, and wake.
//
// Power-down     a rank without a queued request powers down after an idle time since its last
//                command. Open rows stay open. It wakes for requests and refreshes.
// Self-refresh   after an idle time since its last request, the rows of a rank are closed and it
//                enters self-refresh. It wakes for requests.
// Thread safety  one thread.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/channel_candidate.hpp"
#include "sim/channel_timing.hpp"
#include "sim/controller.hpp"
#include "sim/refresh_manager.hpp"

namespace nearfar::sim {

class PowerManager {
public:
  PowerManager(const Device& device, const Controller& controller)
      : power_down_after_(idle_time(device, device.timing.tXP, controller.power_down_after)),
        self_refresh_after_(idle_time(device, device.timing.tXS, controller.self_refresh_after)),
        tCKE_(device.timing.tCKE), tCKESR_(device.timing.tCKESR),
        needed_from_(device.organization.ranks) {}

  /// Offers the next change of the power state of each rank.
  void offer(const ChannelTiming& timing, const RequestQueues& queues,
             const RefreshManager& refreshes, ChannelCandidate& best) {
    if (power_down_after_ == never && self_refresh_after_ == never) return;
    std::fill(needed_from_.begin(), needed_from_.end(), never);
    for (const bool posted : {false, true})
      for (const ChannelRequest& request : queues.of(posted))
        needed_from_[request.address.rank] =
            std::min(needed_from_[request.address.rank], request.arrival);
    for (std::uint32_t rank = 0; rank < needed_from_.size(); ++rank)
      offer_rank(timing, rank, refreshes.rank_due(rank), best);
  }

private:
  /// Whole clocks; `never` if the device has no figures of the state or the controller does not use
  /// it. `exit`: tXP or tXS.
  static Time idle_time(const Device& device, Time exit, Time after) {
    return exit && after != never ? device.timing.whole_clocks(after) : never;
  }
  static Time later(Time at, Time after) { return after == never ? never : at + after; }

  void offer_rank(const ChannelTiming& timing, std::uint32_t number, Time refresh_due,
                  ChannelCandidate& best) const {
    const ChannelTiming::Rank& rank = timing.ranks()[number];
    const Time needed_from = needed_from_[number];
    const Time self_refresh_from = later(rank.used_until, self_refresh_after_);
    ChannelCandidate candidate;
    candidate.bank = number * timing.banks_per_rank();
    if (rank.state != RankState::awake) {
      const bool refreshing = rank.state == RankState::self_refresh;
      const Time from =
          refreshing ? needed_from : std::min({needed_from, refresh_due, self_refresh_from});
      candidate.type = CommandType::wake;
      candidate.priority = Priority::refresh;
      candidate.at = std::max(from, rank.asleep_since + (refreshing ? tCKESR_ : tCKE_));
      best.offer(candidate);
      return;
    }
    candidate.priority = Priority::power;
    candidate.type = CommandType::power_down;
    candidate.at = later(rank.busy_until, power_down_after_);
    if (candidate.at < std::min({needed_from, refresh_due, self_refresh_from}))
      best.offer(candidate);
    offer_self_refresh(timing, candidate.bank, std::min(needed_from, refresh_due),
                       self_refresh_from, best);
  }

  /// Offers precharges, then self-refresh, from `from` on. `until`: time of the next request or
  /// refresh.
  void offer_self_refresh(const ChannelTiming& timing, std::uint32_t first_bank, Time until,
                          Time from, ChannelCandidate& best) const {
    if (from >= until) return;
    ChannelCandidate candidate;
    candidate.priority = Priority::power;
    candidate.type = CommandType::self_refresh;
    candidate.bank = first_bank;
    const ChannelTiming::Rank& rank = timing.ranks()[timing.bank(first_bank).rank];
    candidate.at = std::max({from, rank.busy_until, timing.row_command_from()});
    for (std::uint32_t i = first_bank; i < first_bank + timing.banks_per_rank(); ++i) {
      if (timing.bank(i).row == no_row) continue;
      candidate.type = CommandType::precharge;
      candidate.bank = i;
      candidate.at =
          std::max({from, timing.precharge_time(timing.bank(i)), timing.row_command_from()});
      break;
    }
    if (candidate.at < until) best.offer(candidate);
  }

  Time power_down_after_;
  Time self_refresh_after_;
  Time tCKE_;
  Time tCKESR_;
  std::vector<Time> needed_from_; ///< by rank: earliest arrival of a request
};

} // namespace nearfar::sim
