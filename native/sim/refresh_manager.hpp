// Schedules the refreshes of a channel.
//
// The banks of a rank are divided into refresh sets (Organization::refresh_sets), which are refreshed in
// turn. When the refresh of a set is due, its banks accept only precharges. When all its banks are
// closed, the refresh is issued.
// Thread safety  one thread.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/channel_candidate.hpp"
#include "sim/channel_timing.hpp"

namespace nearfar::sim {

class RefreshManager {
public:
  explicit RefreshManager(const Device& device)
      : interval_(device.timing.tREFI),
        sets_(static_cast<std::uint32_t>(device.organization.refresh_sets)),
        banks_per_rank_(
            static_cast<std::uint32_t>(device.organization.groups * device.organization.banks)) {
    for (std::uint64_t rank = 0; rank < device.organization.ranks; ++rank)
      for (std::uint64_t set = 1; set <= sets_; ++set)
        due_.push_back(interval_ ? first_due(device.timing, set) : never);
  }

  /// Due time of the next refresh of a bank; `never` for memories without refresh.
  Time due(std::uint32_t bank) const { return due_[set_of(bank)]; }

  /// Offers the precharges and the refresh that each set needs next.
  void offer(const ChannelTiming& timing, ChannelCandidate& best) const {
    if (!interval_) return;
    for (std::uint32_t set = 0; set < due_.size(); ++set)
      offer_set(set, timing, best);
  }

  /// Records the refresh of the set that contains `bank`.
  void refresh(std::uint32_t bank, ChannelTiming& timing, Time at) {
    const std::uint32_t set = set_of(bank);
    each_bank(set, [&](std::uint32_t other) { timing.refresh(other, at); });
    due_[set] += interval_;
  }

  /// Due time of the next refresh of any set of a rank.
  Time rank_due(std::uint32_t rank) const {
    const auto first = due_.begin() + static_cast<std::ptrdiff_t>(rank * sets_);
    return *std::min_element(first, first + static_cast<std::ptrdiff_t>(sets_));
  }

  /// The rank leaves self-refresh at `at`: refreshes that were due by then are done.
  void complete_self_refresh(std::uint32_t rank, Time at) {
    if (!interval_) return;
    for (std::uint32_t set = rank * sets_; set < (rank + 1) * sets_; ++set)
      if (due_[set] <= at) due_[set] += ((at - due_[set]) / interval_ + 1) * interval_;
  }

private:
  /// The refreshes of the sets are spread evenly over tREFI.
  Time first_due(const Timing& timing, std::uint64_t set) const {
    return timing.tREFI * set / sets_ / timing.clock * timing.clock;
  }

  /// Number of a set, over all ranks.
  std::uint32_t set_of(std::uint32_t bank) const {
    return bank / banks_per_rank_ * sets_ + bank % banks_per_rank_ % sets_;
  }
  void each_bank(std::uint32_t set, auto&& call) const {
    const std::uint32_t rank = set / sets_;
    for (std::uint32_t i = set % sets_; i < banks_per_rank_; i += sets_)
      call(rank * banks_per_rank_ + i);
  }

  void offer_set(std::uint32_t set, const ChannelTiming& timing, ChannelCandidate& best) const {
    const Time from = std::max(due_[set], timing.row_command_from());
    if (from > best.at) return;
    ChannelCandidate candidate;
    candidate.priority = Priority::refresh;
    Time all_closed = from;
    bool any_open = false;
    each_bank(set, [&](std::uint32_t number) {
      const ChannelTiming::Bank& bank = timing.bank(number);
      candidate.bank = number;
      all_closed = std::max(all_closed, bank.activate_from);
      if (bank.row == no_row) return;
      any_open = true;
      candidate.type = CommandType::precharge;
      candidate.at = std::max(from, timing.precharge_time(bank));
      best.offer(candidate);
    });
    if (any_open) return;
    candidate.type = CommandType::refresh;
    candidate.at = std::max(all_closed, timing.ranks()[set / sets_].awake_from);
    best.offer(candidate);
  }

  Time interval_;
  std::uint32_t sets_;
  std::uint32_t banks_per_rank_;
  std::vector<Time> due_; ///< by set, over all ranks
};

} // namespace nearfar::sim
