// The exact engine: one channel, command by command.
//
// Scheduling     FR-FCFS: of all commands of waiting requests the one that can go first goes, among
//                equals column commands before activates before precharges, the older first. A row
//                that a waiting request wants is not closed.
// Writes         those that somebody waits for stand in line with reads; posted ones wait until
//                Controller::drain_from of them are there, and then go, alone, until drain_to are
//                left. Requests whose rows are already open for them at such a change are finished
//                before column commands of the other kind; no row is opened and closed unused.
// Refresh        when it is due a rank takes no further command but precharges, then refreshes.
// Events         the clock jumps from command to command; what is legal when follows from the
//                commands issued before, never from the future.
// Thread safety  none.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "sim/command.hpp"
#include "sim/completion.hpp"
#include "sim/controller.hpp"

namespace nearfar::sim {

class ExactChannel {
public:
  ExactChannel(const Device& device, const Controller& controller, std::uint32_t number);

  /// A request that arrives at `at`, which may lie ahead. Its completion comes out of step().
  void demand(std::uint64_t id, Time at, const Place& place, bool write);

  /// A write nobody waits for; only while has_room().
  void post(Time at, const Place& place);
  bool has_room() const { return posted_.size() < most_posted(); }

  /// Posted writes go without waiting for others from now on, until demand() or post().
  void flush() {
    flushing_ = true;
    known_ = false;
  }

  /// When the next command goes; `never` if nothing waits.
  Time next() {
    if (!known_) choose();
    return choice_.at;
  }

  /// Issues the next command; a completion if it was the column command of a demand.
  std::optional<Completion> step();

  /// Accounts until `end`.
  void finish(Time end);

  const Work& work() const { return work_; }

  /// Appends every command to `out`, until called with nullptr.
  void record(std::vector<Command>* out) { recorded_ = out; }

private:
  static constexpr std::uint64_t closed = ~std::uint64_t{0};

  struct Waiting {
    std::uint64_t id;
    Time arrival;
    Place place;
    bool write;
    bool opened; ///< its row was activated for it: no hit
  };
  struct Bank {
    std::uint64_t row = closed;
    Time activate_from = 0;
    Time column_from = 0;
    Time precharge_from = 0;
    Time last_used = 0;
    std::uint32_t wanted = 0;  ///< mark of the last choose() that saw a request for the open row
    Time wanted_from = 0;      ///< when the first of those arrives
    std::uint32_t claimed = 0; ///< mark of the last choose() that saw an older request for another
    std::uint32_t rank = 0;
    std::uint32_t group = 0;
    bool dirty = false;
  };
  struct Group { // and what tells of a whole rank is in Rank
    Time activate_from = 0;
    Time column_from = 0;
    Time read_from = 0;
  };
  struct Rank {
    Time activate_from = 0;
    std::array<Time, 4> windows{}; ///< when each of the last four activates leaves tFAW
    unsigned oldest = 0;
    Time read_from = 0;
    Time array_write_from = 0;
    Time refresh_at = never;
    Time blocked_until = 0;
    Time open_since = 0;
    Time open_until = 0;
    unsigned open = 0;
  };
  struct Choice {
    Time at = never;
    unsigned urgency = 0;
    Act act = Act::activate;
    bool posted = false;    ///< the request is one of posted_
    std::uint32_t bank = 0; ///< or the rank of a refresh
    std::size_t index = 0;  ///< of the request
  };

  std::size_t most_posted() const { return 2 * std::size_t{controller_.drain_from}; }
  std::vector<Waiting>& requests(bool posted) { return posted ? posted_ : demands_; }
  bool has_own_row(const Waiting& request) const {
    return request.opened && banks_[request.place.bank].row == request.place.row;
  }
  void choose();
  void choose_mode();
  void set_draining(bool draining);
  void want_row(const Waiting& request);
  void consider_unfinished();
  void consider(const Choice& candidate);
  void consider_refresh(std::uint32_t number);
  void consider_idle_rows();
  void consider_request(std::size_t index);
  void consider_column(bool posted, std::size_t index);
  Time column_time(const Waiting& request) const;
  Time activate_time(const Bank& bank) const;
  Time precharge_time(const Bank& bank) const;
  void activate(Bank& bank, std::uint64_t row, Time at);
  void precharge(Bank& bank, Time at, bool automatic);
  void refresh(std::uint32_t number, Time at);
  Completion column(const Choice& choice);
  bool wanted_by_others(const Choice& choice) const;
  void log(Act act, const Bank& bank, Time at, bool automatic);

  Timing timing_;
  Controller controller_;
  std::uint32_t number_;
  std::uint32_t groups_;
  std::vector<Bank> banks_;
  std::vector<Group> group_state_; ///< rank * groups + group
  std::vector<Rank> ranks_;
  std::vector<Waiting> demands_;
  std::vector<Waiting> posted_;
  Time command_from_ = 0; ///< the command bus
  Time column_from_ = 0;
  Time data_until_ = 0; ///< the data bus
  std::uint32_t data_rank_ = 0;
  bool data_write_ = false;
  bool draining_ = false;
  bool unfinished_ = false; ///< requests of the other kind may have rows that are open for them
  bool flushing_ = false;
  bool known_ = false;
  Choice choice_;
  std::uint32_t mark_ = 0;
  Work work_;
  std::vector<Command>* recorded_ = nullptr;
};

} // namespace nearfar::sim
