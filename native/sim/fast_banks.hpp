// The fast engine of a memory with commands. It does not issue commands; it keeps the times at
// which banks, ranks and buses are free.
//
// Each request is timed once, in program order. Reordering by a scheduler is approximated:
// Reservations   of data buses (DataBus) and of activates (Activates) are made in any order of time.
// Posted writes  wait in a queue of their channel and are drained in batches.
// Closed rows    An access that arrives before its row was closed hits it: a scheduler would have
//                served it first.
// Not modeled    the command bus, power states, other reordering of reads.
// Thread safety  none.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "sim/activates.hpp"
#include "sim/calendar.hpp"
#include "sim/controller.hpp"
#include "sim/data_bus.hpp"

namespace nearfar::sim {

class FastBanks {
public:
  FastBanks(const Device& device, const Controller& controller);

  /// Times a demand access and returns its end: of the data (read), of the precharge (write with
  /// closed rows), or of write recovery (write with open rows).
  Time serve(Time at, std::uint64_t line, bool write) {
    const DramAddress address = decoder_.decode(line);
    Channel& channel = channels_[address.channel];
    if (!write && is_open(channel, address, at)) [[likely]]
      return read_open(channel, address, at);
    return serve_any(channel, address, at, write);
  }

  /// serve() without its short path. The result is the same.
  Time serve_any(Time at, std::uint64_t line, bool write) {
    const DramAddress address = decoder_.decode(line);
    return serve_any(channels_[address.channel], address, at, write);
  }

  /// Queues a posted write. Returns when the sender may continue.
  Time post(Time at, std::uint64_t line);

  /// Drains all posted writes. Returns the end of the last one, at least `at`.
  Time drain(Time at);

  /// Counts refreshes and the time with open rows until `end`.
  void finish(Time end);

  const Activity& activity() const { return activity_; }

private:
  static constexpr std::uint64_t closed = ~std::uint64_t{0};

  /// A closed row. An access that arrives by `until` still hits it.
  struct ClosedRow {
    std::uint64_t row = closed;
    Time until = 0;
    Time column_from = 0;
    bool dirty = false;
  };
  struct alignas(line_bytes) Bank {
    std::uint64_t row = closed;
    Time column_from = 0;
    Time write_from = 0;
    Time precharge_from = 0;
    Time last_used = 0;
    Time refresh_at = 0; ///< no refresh concerns an access whose first command is before it
    Time activate_from = 0;
    std::uint32_t epoch = 0; ///< Rank::epoch at the last access
    bool dirty = false;
    std::uint8_t closes = 0;              ///< number of rows closed so far, modulo 256
    std::array<ClosedRow, 4> closed_rows; ///< rows that were open before `row`; a ring
    Time opened = 0;
  };
  /// Write-to-read turnaround of a rank or a bank group.
  struct Turnaround {
    Time write_data_begin = 0;
    Time read_from = 0;
  };
  struct Rank {
    explicit Rank(const Timing& t)
        : activates(t), array_writes(t.tRRDpre), refresh_at(t.tREFI ? t.tREFI : never) {}
    Activates activates;
    Calendar array_writes;
    Time refresh_at;
    Time refreshing_from = 0;
    Time blocked_until = 0;
    Time open_since = 0; ///< open rows: first activate after a refresh
    Time open_until = 0; ///< closed rows: end of the open time counted so far
    Turnaround turnaround;
    std::uint32_t epoch = 0; ///< number of refreshes, at most one per access
    bool any_open = false;
  };
  struct Write {
    DramAddress address;
    Time at = 0; ///< time at which it was posted
  };
  struct Channel {
    explicit Channel(const Device& device) : bus(device) {}
    DataBus bus;
    std::vector<Rank> ranks;
    std::vector<Bank> banks;
    std::vector<Turnaround> groups; ///< of all ranks
    std::vector<Write> posted;
    Time filled = 0;      ///< time at which drain_from writes were queued
    Time draining = 0;    ///< begin of the drain
    Time drained = 0;     ///< last column command of the drain
    Time room_from = 0;   ///< time at which the last write that found a full queue was accepted
    Time write_from = 0;  ///< earliest column command of a write after the bus turned
    Time read_column = 0; ///< column command of the last read; a drain begins after it
    /// Without posted writes: no write delays a read that arrives from here on. `never` with closed
    /// rows.
    Time reads_alone_from = 0;
  };

  /// Whether a read at `at` hits an open row, and only the bank and the data bus can delay it.
  static bool is_open(const Channel& channel, DramAddress address, Time at) {
    const Bank& bank = channel.banks[address.bank];
    return bank.row == address.row && std::max(at, bank.column_from) < bank.refresh_at &&
           at >= channel.reads_alone_from && channel.posted.empty();
  }

  /// access() of a read for which is_open().
  Time read_open(Channel& channel, DramAddress address, Time at) {
    Bank& bank = channel.banks[address.bank];
    ++activity_.row_hits;
    ++activity_.reads;
    const Time begin = book_data(channel, address, std::max(at, bank.column_from), false);
    const Time column = begin - timing_.CL;
    bank.column_from = bank.write_from = column + timing_.tCCDL;
    bank.last_used = column;
    bank.precharge_from = std::max(bank.precharge_from, column + timing_.tRTP);
    channel.read_column = std::max(channel.read_column, column);
    return begin + timing_.burst;
  }

  Time serve_any(Channel& channel, DramAddress address, Time at, bool write);
  Time access(Channel& channel, DramAddress address, Time at, bool write);
  /// Reserves the data bus for an access whose column command can be issued at `column`. Returns
  /// when the data begin.
  Time book_data(Channel& channel, DramAddress address, Time column, bool write) const {
    return channel.bus.book(column + (write ? timing_.CWL : timing_.CL), address.rank,
                            group_of(address), write);
  }
  /// The number of its bank's group in the channel.
  std::uint32_t group_of(DramAddress address) const {
    return std::uint32_t{address.bank} >> group_shift_;
  }
  inline void open_row(Rank& rank, std::uint32_t group, Bank& bank, Time at, std::uint64_t row);
  static void remember_closed(Bank& bank, Time until);
  static unsigned find_closed(const Bank& bank, std::uint64_t row, Time at);
  Time access_closed(Channel& channel, DramAddress address, unsigned back, Time at, bool write);
  bool goes_before_drain(const Channel& channel, DramAddress address, Time at) const;
  Time read_from(const Channel& channel, DramAddress address, Time column) const;
  Time precharge(Rank& rank, Bank& bank, Time at);
  void close_lazily(Rank& rank, Bank& bank, Time at, std::uint64_t row);
  void refresh_before(Channel& channel, DramAddress address, Time first);
  void refresh(Channel& channel, std::uint32_t number, Time at);
  Time refresh_end(const Channel& channel, std::uint32_t number, Time due) const;
  void end_epoch(Bank& bank);
  void account_open(Rank& rank, Time from, Time until);
  void order_posted(Channel& channel);
  std::uint32_t turn_of(const Channel& channel, std::uint32_t number);
  void turn_to_writes(Channel& channel) const;
  void write_while_idle(Channel& channel, Time until);
  static Time first_command(const Bank& bank, std::uint64_t row, Time at);
  Time activate_from(const Bank& bank, Time at) const;
  Time write_batch(Channel& channel, Time at, std::size_t left);

  Timing timing_;
  unsigned group_shift_; ///< from the number of a bank to that of its group, in the channel
  Controller controller_;
  AddressDecoder decoder_;
  std::vector<Channel> channels_;
  Activity activity_;

  // Working memory of order_posted().
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  struct Turns {
    std::uint32_t turns = 0;   ///< number of rows of the bank so far
    std::uint32_t last = none; ///< index of the last posted write to the bank
  };
  struct Posted {
    std::uint32_t turn = 0;
    std::uint32_t before = none; ///< index of the previous posted write to the bank
  };
  std::vector<Turns> turns_;         ///< by bank
  std::vector<Posted> posted_;       ///< by index in the queue
  std::vector<std::uint32_t> first_; ///< by turn: index of its next write in the new order
  std::vector<Write> ordered_;
};

} // namespace nearfar::sim
