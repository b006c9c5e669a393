#include "sim/fast_banks.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace nearfar::sim {

FastBanks::FastBanks(const Device& device, const Controller& controller)
    : timing_(device.timing), banks_per_group_(static_cast<std::uint32_t>(device.shape.banks)),
      controller_(controller), decoder_(device.shape, controller.mapping) {
  for (std::uint64_t c = 0; c < device.shape.channels; ++c) {
    Channel& channel = channels_.emplace_back(timing_);
    for (std::uint64_t r = 0; r < device.shape.ranks; ++r)
      channel.ranks.emplace_back(timing_);
    channel.groups.resize(device.shape.ranks * device.shape.groups);
    channel.banks.resize(channel.groups.size() * device.shape.banks);
  }
}

void FastBanks::account_open(Rank& rank, Time from, Time until) {
  if (until <= rank.open_until) return;
  work_.active += until - std::max(from, rank.open_until);
  rank.open_until = until;
}

/// All refreshes that were due by `at`: the last one is the one that may still be going on.
void FastBanks::refresh(Rank& rank, Time at) {
  const Time due = rank.refresh_at + (at - rank.refresh_at) / timing_.tREFI * timing_.tREFI;
  work_.refreshes += (due - rank.refresh_at) / timing_.tREFI + 1;
  if (rank.any_open) account_open(rank, rank.open_since, rank.refresh_at);
  rank.any_open = false;
  rank.refreshing_from = due;
  rank.blocked_until = due + timing_.tRP + timing_.tRFC;
  rank.refresh_at = due + timing_.tREFI;
  ++rank.epoch;
}

/// Closes a row from `at` on; returns when the bank can be activated again.
Time FastBanks::precharge(Rank& rank, Bank& bank, Time at) {
  if (!bank.dirty) return at + timing_.tRPclean;
  ++work_.array_writes;
  return rank.array_writes.book(at) + timing_.tRP;
}

/// Opens a row.
void FastBanks::open_row(Rank& rank, Bank& bank, Time at, std::uint64_t row) {
  Time from = std::max(at, bank.activate_from);
  if (bank.row != closed) {
    const Time closing = std::max(at, bank.precharge_from);
    leave(bank, closing);
    from = std::max(from, precharge(rank, bank, closing));
  }
  const Time activated = rank.activates.book(rank.windows.book(rank.long_windows.book(from)));
  ++work_.activates;
  if (!rank.any_open && controller_.page == PagePolicy::open) {
    rank.any_open = true;
    rank.open_since = activated;
  }
  bank.row = row;
  bank.dirty = false;
  bank.opened = activated;
  bank.column_from = activated + timing_.tRCD;
  bank.write_from = activated + timing_.tRCDWR;
  bank.precharge_from = activated + timing_.tRAS;
}

/// Rows that are not kept open are closed at the next access, unless this request was already
/// waiting for the row when it was last used.
void FastBanks::close_lazily(Rank& rank, Bank& bank, Time at, std::uint64_t row) {
  if (at <= bank.last_used && bank.row == row) return;
  leave(bank, bank.last_used);
  bank.activate_from = precharge(rank, bank, std::max(bank.precharge_from, bank.last_used));
  bank.row = closed;
}

/// Does an access that arrives when posted writes are to go next still go before them? Its column
/// command does; where rows are closed at once it is enough if its activate does.
bool FastBanks::makes_it(const Channel& channel, const Place& place, Time at) const {
  if (at >= channel.draining || controller_.page == PagePolicy::closed)
    return at < channel.draining;
  const Timing& t = timing_;
  const Bank& bank = channel.banks[place.bank];
  if (bank.row == place.row) return bank.column_from <= channel.draining;
  Time from = bank.activate_from;
  if (bank.row != closed)
    from = std::max(at, bank.precharge_from) + (bank.dirty ? t.tRP : t.tRPclean);
  return std::max(at, from) + t.tRCD <= channel.draining;
}

Time FastBanks::access(Channel& channel, const Place& place, Time at, bool write) {
  const Timing& t = timing_;
  Rank& rank = channel.ranks[place.rank];
  Bank& bank = channel.banks[place.bank];
  if (t.tREFI && at >= rank.refresh_at) [[unlikely]]
    refresh(rank, at);
  if (at >= rank.refreshing_from) at = std::max(at, rank.blocked_until);
  if (bank.epoch != rank.epoch) {
    if (bank.row != closed) end_epoch(bank);
    bank.left = {};
    bank.epoch = rank.epoch;
  }
  if (controller_.page == PagePolicy::closed && bank.row != closed)
    close_lazily(rank, bank, at, place.row);
  if (bank.row == place.row)
    ++work_.row_hits;
  else if (const unsigned back = left_row(bank, place.row, at))
    return access_left(channel, place, back, at, write);
  else
    open_row(rank, bank, at, place.row);

  Time column = std::max(at, write ? bank.write_from : bank.column_from);
  column = write ? std::max(column, channel.write_from) : read_from(channel, place, column);
  const Time lead = write ? t.CWL : t.CL;
  const Time begin = channel.bus.book(column + lead);
  const Time end = begin + t.burst;
  column = begin - lead;
  bank.column_from = column + t.tCCDL;
  bank.write_from = column + (write ? t.tCCDLWR : t.tCCDL);
  bank.last_used = column;
  bank.precharge_from = std::max(bank.precharge_from, write ? end + t.tWR : column + t.tRTP);
  if (controller_.page == PagePolicy::closed) account_open(rank, bank.opened, bank.precharge_from);
  if (!write) {
    ++work_.reads;
    channel.read_column = std::max(channel.read_column, column);
    return end;
  }
  ++work_.writes;
  bank.dirty = true;
  rank.turnaround = {begin, end + t.tWTR};
  channel.groups[place.bank / banks_per_group_] = {begin, end + t.tWTRL};
  return controller_.page == PagePolicy::closed ? bank.precharge_from + t.tRP : end + t.tWR;
}

/// Remembers the open row, which is closed at `until`.
void FastBanks::leave(Bank& bank, Time until) {
  bank.left[bank.lefts++ % bank.left.size()] = {bank.row, until, bank.column_from, bank.dirty};
}

/// How many rows ago this one was left, by someone whom who arrives at `at` still overtakes; or 0.
unsigned FastBanks::left_row(const Bank& bank, std::uint64_t row, Time at) {
  for (unsigned back = 1; back <= bank.left.size(); ++back) {
    const Left& left = bank.left[(bank.lefts - back) % bank.left.size()];
    if (at > left.until) return 0;
    if (left.row == row) return back;
  }
  return 0;
}

/// An access that an exact scheduler takes before it closes the row; what came after waits.
Time FastBanks::access_left(Channel& channel, const Place& place, unsigned back, Time at,
                            bool write) {
  const Timing& t = timing_;
  Bank& bank = channel.banks[place.bank];
  const bool at_once = controller_.page == PagePolicy::closed;
  Left& left = bank.left[(bank.lefts - back) % bank.left.size()];
  const Time free = std::max(at, left.column_from);
  const Time lead = write ? t.CWL : t.CL;
  const Time begin = channel.bus.book((write ? free : read_from(channel, place, free)) + lead);
  const Time column = begin - lead;
  const Time done = write ? begin + t.burst + t.tWR : column + t.tRTP;
  Time later = std::max(left.until, at_once ? column : done) - left.until;
  if (write && !left.dirty) {
    ++work_.array_writes;
    later += t.tRP - t.tRPclean;
    left.dirty = true;
  }
  left.column_from = column + t.tCCDL;
  for (unsigned i = back; i > 0; --i) {
    Left& after = bank.left[(bank.lefts - i) % bank.left.size()];
    after.until += later;
    if (i < back) after.column_from += later;
  }
  bank.column_from += later;
  bank.write_from += later;
  bank.precharge_from += later;
  ++work_.row_hits;
  ++(write ? work_.writes : work_.reads);
  if (!write) channel.read_column = std::max(channel.read_column, column);
  if (!write) return begin + t.burst;
  return at_once ? done + t.tRP : done;
}

/// A read waits until the data of the last write of its rank and of its group are in.
Time FastBanks::read_from(const Channel& channel, const Place& place, Time column) const {
  for (const Turnaround& after :
       {channel.ranks[place.rank].turnaround, channel.groups[place.bank / banks_per_group_]})
    if (column < after.read_from && column + timing_.CL + timing_.burst > after.write_data_begin)
      column = after.read_from;
  return column;
}

/// A refresh closed the row.
void FastBanks::end_epoch(Bank& bank) {
  if (bank.dirty) ++work_.array_writes;
  bank.dirty = false;
  bank.row = closed;
}

/// What an exact scheduler would take first comes to the front: the rows that are open, then
/// another row of each bank with all that wait for it, and so on; among equals the older.
void FastBanks::order_posted(Channel& channel) {
  turns_.assign(channel.banks.size(), {});
  posted_.resize(channel.posted.size());
  first_.assign(channel.posted.size() + 2, 0);
  for (std::uint32_t i = 0; i < channel.posted.size(); ++i) {
    const std::uint32_t turn = turn_of(channel, i);
    ++first_[turn + 1];
  }
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  ordered_.resize(channel.posted.size());
  for (std::uint32_t i = 0; i < channel.posted.size(); ++i)
    ordered_[first_[posted_[i].turn]++] = channel.posted[i];
  channel.posted.swap(ordered_);
}

/// 0 for a row that is open, else which of its bank's other rows it is.
std::uint32_t FastBanks::turn_of(const Channel& channel, std::uint32_t number) {
  const Place& place = channel.posted[number].place;
  Turns& of_bank = turns_[place.bank];
  Posted& one = posted_[number];
  one.before = std::exchange(of_bank.last, number);
  if (channel.banks[place.bank].row == place.row) return one.turn = 0;
  for (std::uint32_t other = one.before; other != none; other = posted_[other].before)
    if (channel.posted[other].place.row == place.row) return one.turn = posted_[other].turn;
  return one.turn = ++of_bank.turns;
}

/// The data of a write come after those of the last read.
void FastBanks::turn_to_writes(Channel& channel) const {
  const Timing& t = timing_;
  channel.write_from = channel.read_column + t.CL + t.burst + t.tRTRS - std::min(t.CWL, t.CL);
}

/// When the first command of an access is issued that may be issued from `at` on.
Time FastBanks::first_command(const Channel& channel, const Place& place, Time at) const {
  const Bank& bank = channel.banks[place.bank];
  if (bank.row == place.row) return std::max(at, bank.column_from);
  return std::max(at, bank.row == closed ? bank.activate_from : bank.precharge_from);
}

/// Writes the posted writes whose first command is issued before `until`, after the last read.
void FastBanks::write_while_idle(Channel& channel, Time until) {
  if (channel.posted.size() < controller_.drain_idle || channel.read_column >= until) return;
  turn_to_writes(channel);
  std::erase_if(channel.posted, [&](const Write& write) {
    const Time from = first_command(channel, write.place, std::max(write.at, channel.read_column));
    if (from >= until) return false;
    access(channel, write.place, from, true);
    channel.banks[write.place.bank].left = {}; // what it closed was not waited for
    return true;
  });
}

Time FastBanks::write_batch(Channel& channel, Time at, std::size_t left) {
  order_posted(channel);
  const auto end =
      channel.posted.begin() + static_cast<std::ptrdiff_t>(channel.posted.size() - left);
  Time done = at;
  for (auto write = channel.posted.begin(); write != end; ++write) {
    done = std::max(done, access(channel, write->place, at, true));
    Bank& bank = channel.banks[write->place.bank];
    bank.left = {}; // what it closed was not waited for
    channel.drained = std::max(channel.drained, bank.last_used);
  }
  channel.posted.erase(channel.posted.begin(), end);
  return done;
}

Time FastBanks::post(Time at, std::uint64_t line) {
  const Place place = decoder_.place(line);
  Channel& channel = channels_[place.channel];
  if (!channel.posted.empty()) write_while_idle(channel, at);
  channel.posted.push_back({place, at});
  const std::size_t waiting = channel.posted.size();
  const bool full = waiting == 2 * std::size_t{controller_.drain_from};
  if (full) channel.room_from = channel.drained;
  const Time on = std::max(at, channel.room_from); // in trace time `at` may be earlier
  if (waiting < controller_.drain_from || (at < channel.drained && !full)) return on;
  turn_to_writes(channel);
  channel.filled = at;
  const Time opening = std::max(at, channel.drained); // while reads whose rows are open finish
  channel.draining = std::max({at, channel.drained, channel.read_column});
  write_batch(channel, opening, controller_.drain_to);
  return on;
}

Time FastBanks::drain(Time at) {
  Time done = at;
  for (Channel& channel : channels_)
    done = std::max(done, write_batch(channel, at, 0));
  return done;
}

void FastBanks::finish(Time end) {
  for (Channel& channel : channels_) {
    for (Rank& rank : channel.ranks) {
      if (timing_.tREFI && end >= rank.refresh_at) refresh(rank, end);
      if (rank.any_open) account_open(rank, rank.open_since, end);
    }
    for (Bank& bank : channel.banks)
      if (bank.row != closed) end_epoch(bank);
  }
}

} // namespace nearfar::sim
