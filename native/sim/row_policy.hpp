// Row policy of a channel: when open rows are closed.
//
// Required rows  A row stays open while a request that has arrived requires it. Requests of the
//                active queue (posted writes during a drain, else demands) require their rows; with
//                FCFS, the oldest request only.
//                Requests of the other queue require only rows that were activated for them.
// Other rows     are closed as PagePolicy says. A refresh closes required rows, too.
// Row-hit cap    A row that has reached the cap is required only by requests that are older than
//                the oldest request for another row of the bank.
// Thread safety  one thread.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "sim/channel_candidate.hpp"
#include "sim/channel_timing.hpp"
#include "sim/controller.hpp"
#include "sim/refresh_manager.hpp"

namespace nearfar::sim {

class RowPolicy {
public:
  RowPolicy(const Device& device, const Controller& controller, std::size_t banks)
      : page_(controller.page), timeout_(device.timing.whole_clocks(controller.timeout)),
        row_hit_cap_(controller.row_hit_cap), uses_(banks) {}

  /// Begins the choice of a command: clears the required rows, capped rows and claimed banks.
  void begin() { ++decision_; }

  /// For each bank whose open row has reached the cap, finds the oldest request for another row.
  void find_capped(const ChannelTiming& timing, std::span<const ChannelRequest> queue) {
    if (!row_hit_cap_) return;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const ChannelTiming::Bank& bank = timing.bank(queue[i].address.bank);
      RowUse& use = uses_[queue[i].address.bank];
      if (bank.row == queue[i].address.row || bank.columns < row_hit_cap_ ||
          use.capped == decision_)
        continue;
      use.capped = decision_;
      use.capped_from = i;
    }
  }
  /// Whether queue[index] must wait for an older request for another row, because of the cap.
  bool is_capped(std::uint32_t bank, std::size_t index) const {
    return uses_[bank].capped == decision_ && index > uses_[bank].capped_from;
  }

  /// Records that a queued request requires the open row of its bank, if that is its row.
  void require(const ChannelTiming& timing, const ChannelRequest& request) {
    if (timing.bank(request.address.bank).row != request.address.row) return;
    RowUse& use = uses_[request.address.bank];
    use.required_from =
        use.required == decision_ ? std::min(use.required_from, request.arrival) : request.arrival;
    use.required = decision_;
  }
  /// Whether a request that has arrived by `at` requires the open row.
  bool is_required(std::uint32_t bank, Time at) const {
    return uses_[bank].required == decision_ && uses_[bank].required_from <= at;
  }

  /// Claims a bank for a request that needs another row. Returns false if an older request has
  /// claimed it.
  bool claim(std::uint32_t bank) {
    if (uses_[bank].claimed == decision_) return false;
    uses_[bank].claimed = decision_;
    return true;
  }

  /// Offers precharges of rows that have been idle for the timeout.
  void offer_idle(const ChannelTiming& timing, const RefreshManager& refreshes,
                  ChannelCandidate& best) const {
    if (page_ != PagePolicy::timeout) return;
    for (std::uint32_t i = 0; i < uses_.size(); ++i) {
      const ChannelTiming::Bank& bank = timing.bank(i);
      if (bank.row == no_row) continue;
      ChannelCandidate candidate;
      candidate.type = CommandType::precharge;
      candidate.priority = Priority::precharge;
      candidate.bank = i;
      candidate.at = std::max(
          {bank.last_used + timeout_, timing.precharge_time(bank), timing.row_command_from()});
      if (candidate.at < refreshes.due(i) && !is_required(i, candidate.at)) best.offer(candidate);
    }
  }

  /// Whether the column command of waiting[index] at `at` has an auto-precharge: with
  /// PagePolicy::closed, unless another request of its queue that has arrived needs the row.
  bool closes_after(const std::vector<ChannelRequest>& waiting, std::size_t index, Time at) const {
    if (page_ != PagePolicy::closed) return false;
    const ChannelRequest& request = waiting[index];
    return std::none_of(waiting.begin(), waiting.end(), [&](const ChannelRequest& other) {
      return &other != &request && other.arrival <= at &&
             other.address.bank == request.address.bank && other.address.row == request.address.row;
    });
  }

private:
  /// State of a bank. `required`, `claimed` and `capped` are set if they equal decision_, so that
  /// begin() clears all banks at once.
  struct RowUse {
    std::uint64_t required = 0;
    std::uint64_t claimed = 0;
    std::uint64_t capped = 0;
    Time required_from = 0;      ///< earliest arrival of a request for the row
    std::size_t capped_from = 0; ///< index of the oldest request for another row
  };

  PagePolicy page_;
  Time timeout_;
  unsigned row_hit_cap_;
  std::vector<RowUse> uses_; ///< by bank
  std::uint64_t decision_ = 0;
};

} // namespace nearfar::sim
