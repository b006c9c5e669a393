// When each rank of a channel is refreshed.
//
// After a refresh is due, the rank accepts only precharges; once all its banks are closed, it is
// refreshed.
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
      : interval_(device.timing.tREFI), due_(device.shape.ranks, interval_ ? interval_ : never) {}

  /// When the next refresh of a rank is due: `never` for memories without refresh.
  Time due(std::uint32_t rank) const { return due_[rank]; }

  /// Offers the next command of each rank whose refresh is due.
  void offer(const ChannelTiming& timing, ChannelCandidate& best) const {
    if (!interval_) return;
    for (std::uint32_t rank = 0; rank < due_.size(); ++rank)
      offer_rank(rank, timing, best);
  }

  void issued(std::uint32_t rank) { due_[rank] += interval_; }

  /// Number of refreshes due by `end` that were not simulated because the rank was idle.
  std::uint64_t outstanding(std::uint32_t rank, Time end) const {
    return interval_ && due_[rank] <= end ? (end - due_[rank]) / interval_ + 1 : 0;
  }

private:
  void offer_rank(std::uint32_t rank, const ChannelTiming& timing, ChannelCandidate& best) const {
    const Time from = std::max(due_[rank], timing.command_from());
    if (from > best.at) return;
    ChannelCandidate candidate;
    candidate.priority = Priority::refresh;
    Time all_closed = from;
    const std::uint32_t banks = timing.banks_per_rank();
    for (std::uint32_t i = rank * banks; i < (rank + 1) * banks; ++i) {
      const ChannelTiming::Bank& bank = timing.bank(i);
      if (bank.row != no_row) {
        candidate.act = Act::precharge;
        candidate.bank = i;
        candidate.at = std::max(from, timing.precharge_time(bank));
        best.offer(candidate);
      }
      all_closed = std::max(all_closed, bank.activate_from);
    }
    if (timing.ranks()[rank].open_rows) return;
    candidate.act = Act::refresh;
    candidate.bank = rank;
    candidate.at = all_closed;
    best.offer(candidate);
  }

  Time interval_;
  std::vector<Time> due_; ///< by rank
};

} // namespace nearfar::sim
