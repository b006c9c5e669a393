// Chooses the next command of a channel.
//
// Order          FR-FCFS: the command that is legal first. Ties: refresh or wake, column, activate,
//                precharge, power state; then the oldest request. FCFS: the oldest request only.
// Posted writes  Draining starts at drain_from queued writes, or at drain_idle if no demand waits.
//                It stops at drain_to, and starts again at once if no demand waits and drain_idle
//                writes remain.
// Direction      When draining starts or stops, requests of the other queue whose rows were
//                activated for them are served first, so that no row is closed unused.
// Thread safety  one thread.
#pragma once

#include <utility>

#include "sim/channel_candidate.hpp"
#include "sim/channel_timing.hpp"
#include "sim/controller.hpp"
#include "sim/power_manager.hpp"
#include "sim/refresh_manager.hpp"
#include "sim/row_policy.hpp"

namespace nearfar::sim {

class ChannelScheduler {
public:
  ChannelScheduler(const Device& device, const Controller& controller)
      : power_(device, controller), scheduler_(controller.scheduler),
        drain_from_(controller.drain_from), drain_to_(controller.drain_to),
        drain_idle_(controller.drain_idle) {}

  /// Capacity of the write queue, in requests.
  std::size_t max_posted() const { return 2 * std::size_t{drain_from_}; }

  /// Sets drain_idle to 1: every posted write is drained if no demand waits.
  void flush() { drain_idle_ = 1; }

  /// The next command. Its time is `never` if no demand is queued and no drain starts.
  ChannelCandidate choose(const RequestQueues& queues, const ChannelTiming& timing,
                          const RefreshManager& refreshes, RowPolicy& rows) {
    const std::size_t posted = queues.posted().size();
    if (posted >= drain_from_) set_draining(true);
    if (posted <= drain_to_) set_draining(false);
    if (!draining_ && posted >= drain_idle_) {
      const Time earliest_demand = queues.earliest_demand();
      if (earliest_demand > timing.column_command_from()) {
        set_draining(true);
        idle_from_ = timing.column_command_from();
        const ChannelCandidate idle = choose_active(queues, timing, refreshes, rows);
        if (idle.at < earliest_demand) return idle;
        set_draining(false);
      }
    }
    return choose_active(queues, timing, refreshes, rows);
  }

  /// The next command that serves no request: refresh, power state, precharge of an idle row.
  ChannelCandidate choose_idle(const RequestQueues& queues, const ChannelTiming& timing,
                               const RefreshManager& refreshes, RowPolicy& rows) {
    ChannelCandidate best;
    rows.begin();
    offer_maintenance(queues, timing, refreshes, rows, best);
    return best;
  }

private:
  void offer_maintenance(const RequestQueues& queues, const ChannelTiming& timing,
                         const RefreshManager& refreshes, const RowPolicy& rows,
                         ChannelCandidate& best) {
    rows.offer_idle(timing, refreshes, best);
    refreshes.offer(timing, best);
    power_.offer(timing, queues, refreshes, best);
  }

  void set_draining(bool draining) {
    unfinished_ |= draining != draining_;
    draining_ = draining;
  }

  /// The next command for the active queue: posted writes while draining, else demands.
  ChannelCandidate choose_active(const RequestQueues& queues, const ChannelTiming& timing,
                                 const RefreshManager& refreshes, RowPolicy& rows) {
    ChannelCandidate best;
    const std::vector<ChannelRequest>& active = queues.of(draining_);
    if (active.empty()) return best;
    rows.begin();
    rows.find_capped(timing, active);
    const auto [first, last] = eligible_of(active);
    for (std::size_t i = first; i < last; ++i)
      if (!rows.is_capped(active[i].address.bank, i)) rows.require(timing, active[i]);
    if (unfinished_) offer_unfinished(queues, timing, refreshes, rows, best);
    for (std::size_t i = first; i < last; ++i)
      offer_request(active, i, timing, refreshes, rows, best);
    offer_maintenance(queues, timing, refreshes, rows, best);
    return best;
  }

  /// Indices [first, last) of the requests that the scheduler may serve next.
  std::pair<std::size_t, std::size_t> eligible_of(const std::vector<ChannelRequest>& active) const {
    if (scheduler_ == Scheduler::fr_fcfs) return {0, active.size()};
    const auto by_arrival = [](const ChannelRequest& a, const ChannelRequest& b) {
      return a.arrival < b.arrival;
    };
    const auto oldest = std::min_element(active.begin(), active.end(), by_arrival);
    const auto index = static_cast<std::size_t>(oldest - active.begin());
    return {index, index + 1};
  }

  /// Offers requests of the other queue for which rows were activated before the direction changed.
  void offer_unfinished(const RequestQueues& queues, const ChannelTiming& timing,
                        const RefreshManager& refreshes, RowPolicy& rows, ChannelCandidate& best) {
    const std::vector<ChannelRequest>& others = queues.of(!draining_);
    unfinished_ = false;
    for (std::size_t i = 0; i < others.size(); ++i)
      if (others[i].caused_activate &&
          timing.bank(others[i].address.bank).row == others[i].address.row) {
        unfinished_ = true;
        rows.require(timing, others[i]);
        offer_column(!draining_, others, i, timing, refreshes, best);
      }
  }

  static void offer_column(bool posted, const std::vector<ChannelRequest>& queue, std::size_t index,
                           const ChannelTiming& timing, const RefreshManager& refreshes,
                           ChannelCandidate& best) {
    const ChannelRequest& request = queue[index];
    ChannelCandidate candidate;
    candidate.priority = Priority::column;
    candidate.type = request.write ? CommandType::write : CommandType::read;
    candidate.posted = posted;
    candidate.bank = request.address.bank;
    candidate.index = index;
    candidate.at =
        std::max({timing.column_time(request), request.arrival, timing.column_command_from()});
    if (candidate.at < refreshes.due(candidate.bank)) best.offer(candidate);
  }

  void offer_request(const std::vector<ChannelRequest>& active, std::size_t index,
                     const ChannelTiming& timing, const RefreshManager& refreshes, RowPolicy& rows,
                     ChannelCandidate& best) const {
    const ChannelRequest& request = active[index];
    const ChannelTiming::Bank& bank = timing.bank(request.address.bank);
    if (bank.row == request.address.row) {
      if (!unfinished_ && !rows.is_capped(request.address.bank, index))
        offer_column(draining_, active, index, timing, refreshes, best);
      return;
    }
    if (!rows.claim(request.address.bank)) return;
    ChannelCandidate candidate;
    candidate.posted = draining_;
    candidate.bank = request.address.bank;
    candidate.index = index;
    if (bank.row == no_row) {
      candidate.type = CommandType::activate;
      candidate.priority = Priority::activate;
      candidate.at = timing.activate_time(bank);
    } else {
      candidate.type = CommandType::precharge;
      candidate.priority = Priority::precharge;
      candidate.at = timing.precharge_time(bank);
    }
    candidate.at = std::max({candidate.at, request.arrival, timing.row_command_from(), idle_from_});
    if (candidate.type == CommandType::precharge && rows.is_required(candidate.bank, candidate.at))
      return;
    if (candidate.at < refreshes.due(candidate.bank)) best.offer(candidate);
  }

  PowerManager power_;
  Scheduler scheduler_;
  unsigned drain_from_;
  unsigned drain_to_;
  unsigned drain_idle_;
  bool draining_ = false;
  /// Begin of the last drain that was started because no demand waited. Its row commands are not
  /// issued before this time, although a separate bus of row commands (HBM) may be free earlier.
  Time idle_from_ = 0;
  bool unfinished_ = false; ///< the other queue may hold requests for which rows were activated
};

} // namespace nearfar::sim
