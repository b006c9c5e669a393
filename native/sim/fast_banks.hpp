// The fast engine of a memory of commands: no commands, only when banks, rows, ranks and the bus
// are free.
//
// Each request is timed once, in the order of the program. What an exact scheduler reorders is
// approximated: buses are booked out of order (Calendar), posted writes wait in a queue of their
// channel and are written in batches; an access finds a row that was closed before, if it arrives
// before that happened: an exact scheduler would have taken it first.
// Left out       the command bus, power-down, other reordering of reads.
// Thread safety  none.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "sim/calendar.hpp"
#include "sim/controller.hpp"

namespace nearfar::sim {

class FastBanks {
public:
  FastBanks(const Device& device, const Controller& controller);

  /// Times one demand access. A read ends with its data; a write once its cells
  /// are written: with the precharge where rows are closed at once, else after write recovery.
  Time serve(Time at, std::uint64_t line, bool write) {
    const Place place = decoder_.place(line);
    Channel& channel = channels_[place.channel];
    if (!channel.posted.empty()) write_while_idle(channel, at);
    if (at >= channel.filled && at < channel.drained && !makes_it(channel, place, at))
      at = std::max(at, channel.drained - timing_.tRCD); // its row opens during the last writes
    return access(channel, place, at, write);
  }

  /// Leaves a write behind, to be written with others. Returns when there is room for it.
  Time post(Time at, std::uint64_t line);

  /// Writes all posted writes; returns when the last is done, at least `at`.
  Time drain(Time at);

  /// Accounts until `end` for refreshes and for rows that stayed open.
  void finish(Time end);

  const Work& work() const { return work_; }

private:
  static constexpr std::uint64_t closed = ~std::uint64_t{0};

  /// A row that was closed: a request that arrives by `until` still finds it open.
  struct Left {
    std::uint64_t row = closed;
    Time until = 0;
    Time column_from = 0;
    bool dirty = false;
  };
  struct Bank {
    std::uint64_t row = closed;
    Time activate_from = 0;
    Time column_from = 0;
    Time write_from = 0;
    Time precharge_from = 0;
    Time last_used = 0;
    std::uint32_t epoch = 0; ///< of its rank's refreshes
    bool dirty = false;
    Time opened = 0;
    std::array<Left, 4> left; ///< rows that were open before this one, a ring
    std::uint32_t lefts = 0;  ///< how many there have been
  };
  /// Of a rank or a bank group: reads wait from the data of the last write on.
  struct Turnaround {
    Time write_data_begin = 0;
    Time read_from = 0;
  };
  struct Rank {
    explicit Rank(const Timing& t)
        : activates(t.tRRD), windows(t.tFAW, 4), long_windows(t.t32AW, 32), array_writes(t.tRRDpre),
          refresh_at(t.tREFI) {}
    Calendar activates;
    Quota windows;      ///< of tFAW, four activates each
    Quota long_windows; ///< of t32AW, 32 activates each
    Calendar array_writes;
    Time refresh_at;
    Time refreshing_from = 0;
    Time blocked_until = 0;
    Time open_since = 0; ///< rows that stay open: since the first activate after a refresh
    Time open_until = 0; ///< rows that are closed at once: of those accounted for
    Turnaround turnaround;
    std::uint32_t epoch = 0;
    bool any_open = false;
  };
  struct Write {
    Place place;
    Time at = 0; ///< when it was posted
  };
  struct Channel {
    explicit Channel(const Timing& t) : bus(t.burst) {}
    Calendar bus;
    std::vector<Rank> ranks;
    std::vector<Bank> banks;
    std::vector<Turnaround> groups; ///< of all ranks
    std::vector<Write> posted;
    Time filled = 0;      ///< so many writes wait that they go next
    Time draining = 0;    ///< posted writes have the channel from here ...
    Time drained = 0;     ///< ... until their last column command
    Time room_from = 0;   ///< when the last write that found no room was accepted
    Time write_from = 0;  ///< a column command of a write: the bus has turned
    Time read_column = 0; ///< the last read's: those that were let go before go before
  };

  Time access(Channel& channel, const Place& place, Time at, bool write);
  void open_row(Rank& rank, Bank& bank, Time at, std::uint64_t row);
  static void leave(Bank& bank, Time until);
  static unsigned left_row(const Bank& bank, std::uint64_t row, Time at);
  Time access_left(Channel& channel, const Place& place, unsigned back, Time at, bool write);
  bool makes_it(const Channel& channel, const Place& place, Time at) const;
  Time read_from(const Channel& channel, const Place& place, Time column) const;
  Time precharge(Rank& rank, Bank& bank, Time at);
  void close_lazily(Rank& rank, Bank& bank, Time at, std::uint64_t row);
  void refresh(Rank& rank, Time at);
  void end_epoch(Bank& bank);
  void account_open(Rank& rank, Time from, Time until);
  void order_posted(Channel& channel);
  std::uint32_t turn_of(const Channel& channel, std::uint32_t number);
  void turn_to_writes(Channel& channel) const;
  void write_while_idle(Channel& channel, Time until);
  Time first_command(const Channel& channel, const Place& place, Time at) const;
  Time write_batch(Channel& channel, Time at, std::size_t left);

  Timing timing_;
  std::uint32_t banks_per_group_;
  Controller controller_;
  Decoder decoder_;
  std::vector<Channel> channels_;
  Work work_;

  // What order_posted() works with.
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  struct Turns {
    std::uint32_t turns = 0;   ///< that the bank has had
    std::uint32_t last = none; ///< of the posted ones, that goes to the bank
  };
  struct Posted {
    std::uint32_t turn = 0;
    std::uint32_t before = none; ///< the one before it that goes to the same bank
  };
  std::vector<Turns> turns_;         ///< by bank
  std::vector<Posted> posted_;       ///< by place in the queue
  std::vector<std::uint32_t> first_; ///< by turn: place of its first one in the new order
  std::vector<Write> ordered_;
};

} // namespace nearfar::sim
