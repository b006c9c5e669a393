#include "sim/fast_banks.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace nearfar::sim {

FastBanks::FastBanks(const Device& device, const Controller& controller)
    : timing_(device.timing),
      group_shift_(static_cast<unsigned>(std::countr_zero(device.organization.banks))),
      controller_(controller), decoder_(device.organization, controller.mapping) {
  for (std::uint64_t c = 0; c < device.organization.channels; ++c) {
    Channel& channel = channels_.emplace_back(device);
    for (std::uint64_t r = 0; r < device.organization.ranks; ++r)
      channel.ranks.emplace_back(timing_);
    channel.groups.resize(device.organization.ranks * device.organization.groups);
    channel.banks.resize(channel.groups.size() * device.organization.banks);
    if (controller.page == PagePolicy::closed) channel.reads_alone_from = never;
  }
}

void FastBanks::account_open(Rank& rank, Time from, Time until) {
  if (until <= rank.open_until) return;
  activity_.active += until - std::max(from, rank.open_until);
  rank.open_until = until;
}

/// Does all refreshes that were due by `at`. The last one may still be in progress.
void FastBanks::refresh(Channel& channel, std::uint32_t number, Time at) {
  Rank& rank = channel.ranks[number];
  const Time due = rank.refresh_at + (at - rank.refresh_at) / timing_.tREFI * timing_.tREFI;
  activity_.refreshes += (due - rank.refresh_at) / timing_.tREFI + 1;
  if (rank.any_open) account_open(rank, rank.open_since, rank.refresh_at);
  rank.any_open = false;
  rank.refreshing_from = due;
  rank.blocked_until = refresh_end(channel, number, due);
  rank.refresh_at = due + timing_.tREFI;
  ++rank.epoch;
}

/// Time at which the rank can be used after a refresh that is due at `due`: its rows are closed
/// first.
Time FastBanks::refresh_end(const Channel& channel, std::uint32_t number, Time due) const {
  const std::size_t banks = channel.banks.size() / channel.ranks.size();
  Time from = due;
  for (std::size_t i = number * banks; i < (number + 1) * banks; ++i)
    if (const Bank& bank = channel.banks[i]; bank.epoch == channel.ranks[number].epoch)
      from = std::max(from, activate_from(bank, due));
  return from + timing_.tRFC;
}

/// Does the refreshes that are due by `first`, the first command of an access, and closes the row
/// of its bank if the access comes after one. Accesses with earlier commands may follow.
void FastBanks::refresh_before(Channel& channel, DramAddress address, Time first) {
  Rank& rank = channel.ranks[address.rank];
  Bank& bank = channel.banks[address.bank];
  if (first >= rank.refresh_at) [[unlikely]]
    refresh(channel, address.rank, first);
  if (bank.epoch == rank.epoch) bank.refresh_at = rank.refresh_at;
  if (bank.epoch == rank.epoch) return;
  if (first < rank.refreshing_from) return;
  if (bank.row != closed) end_epoch(bank);
  bank.closed_rows = {};
  bank.epoch = rank.epoch;
  bank.refresh_at = rank.refresh_at;
  bank.activate_from = std::max(bank.activate_from, rank.blocked_until);
}

/// Closes the row at `at`, or when tRRDpre allows. Returns when the bank can be activated.
Time FastBanks::precharge(Rank& rank, Bank& bank, Time at) {
  if (!bank.dirty) return at + timing_.tRPclean;
  ++activity_.array_writes;
  return rank.array_writes.book(at) + timing_.tRP;
}

/// Closes the open row, if any, and activates `row`. Always inline: each random access does it, and
/// compilers take it for too large.
[[gnu::always_inline]] inline void FastBanks::open_row(Rank& rank, std::uint32_t group, Bank& bank,
                                                       Time at, std::uint64_t row) {
  Time from = std::max(at, bank.activate_from);
  if (bank.row != closed) {
    const Time closing = std::max(at, bank.precharge_from);
    remember_closed(bank, closing);
    from = std::max(from, precharge(rank, bank, closing));
  }
  const Time activated = rank.activates.book(from, group);
  ++activity_.activates;
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

/// Row policy closed: accounts for the auto-precharge of the last access. There was none if this
/// request was already waiting for the row.
void FastBanks::close_lazily(Rank& rank, Bank& bank, Time at, std::uint64_t row) {
  if (at <= bank.last_used && bank.row == row) return;
  remember_closed(bank, bank.last_used);
  bank.activate_from = precharge(rank, bank, std::max(bank.precharge_from, bank.last_used));
  bank.row = closed;
}

/// Whether an access that arrives after drain_from writes were queued is still served before the
/// drain: its column command must be issued before it (row policy closed: its activate).
bool FastBanks::goes_before_drain(const Channel& channel, DramAddress address, Time at) const {
  if (at >= channel.draining || controller_.page == PagePolicy::closed)
    return at < channel.draining;
  const Bank& bank = channel.banks[address.bank];
  if (bank.row == address.row) return bank.column_from <= channel.draining;
  return activate_from(bank, at) + timing_.tRCD <= channel.draining;
}

Time FastBanks::serve_any(Channel& channel, DramAddress address, Time at, bool write) {
  if (!channel.posted.empty()) write_while_idle(channel, at);
  if (at >= channel.filled && at < channel.drained && !goes_before_drain(channel, address, at))
    at = std::max(at, channel.drained - timing_.tRCD); // activated during the last writes
  return access(channel, address, at, write);
}

Time FastBanks::access(Channel& channel, DramAddress address, Time at, bool write) {
  const Timing& t = timing_;
  Rank& rank = channel.ranks[address.rank];
  Bank& bank = channel.banks[address.bank];
  const Time first =
      bank.row == address.row ? std::max(at, bank.column_from) : activate_from(bank, at);
  if (first >= bank.refresh_at) refresh_before(channel, address, first);
  if (controller_.page == PagePolicy::closed && bank.row != closed)
    close_lazily(rank, bank, at, address.row);
  if (bank.row == address.row)
    ++activity_.row_hits;
  else if (const unsigned back = find_closed(bank, address.row, at))
    return access_closed(channel, address, back, at, write);
  else
    open_row(rank, address.group, bank, at, address.row);

  Time column = std::max(at, write ? bank.write_from : bank.column_from);
  column = write ? std::max(column, channel.write_from) : read_from(channel, address, column);
  const Time lead = write ? t.CWL : t.CL;
  const Time begin = book_data(channel, address, column, write);
  const Time end = begin + t.burst;
  column = begin - lead;
  bank.column_from = column + t.tCCDL;
  bank.write_from = column + (write ? t.tCCDLWR : t.tCCDL);
  bank.last_used = column;
  bank.precharge_from = std::max(bank.precharge_from, write ? end + t.tWR : column + t.tRTP);
  if (controller_.page == PagePolicy::closed) account_open(rank, bank.opened, bank.precharge_from);
  if (!write) {
    ++activity_.reads;
    channel.read_column = std::max(channel.read_column, column);
    return end;
  }
  ++activity_.writes;
  bank.dirty = true;
  rank.turnaround = {begin, end + t.tWTR};
  channel.groups[group_of(address)] = {begin, end + t.tWTRL};
  channel.reads_alone_from = std::max(channel.reads_alone_from, end + std::max(t.tWTR, t.tWTRL));
  return controller_.page == PagePolicy::closed ? bank.precharge_from + t.tRP : end + t.tWR;
}

/// Records that the open row is closed at `until`.
void FastBanks::remember_closed(Bank& bank, Time until) {
  bank.closed_rows[bank.closes++ % bank.closed_rows.size()] = {bank.row, until, bank.column_from,
                                                               bank.dirty};
}

/// Number of rows since `row` was closed, if an access at `at` still finds it open; else 0.
unsigned FastBanks::find_closed(const Bank& bank, std::uint64_t row, Time at) {
  for (unsigned back = 1; back <= bank.closed_rows.size(); ++back) {
    const ClosedRow& hit = bank.closed_rows[(bank.closes - back) % bank.closed_rows.size()];
    if (at > hit.until) return 0;
    if (hit.row == row) return back;
  }
  return 0;
}

/// Times an access to a row that was closed `back` rows ago. Later accesses to the bank are
/// delayed.
Time FastBanks::access_closed(Channel& channel, DramAddress address, unsigned back, Time at,
                              bool write) {
  const Timing& t = timing_;
  Bank& bank = channel.banks[address.bank];
  const bool at_once = controller_.page == PagePolicy::closed;
  ClosedRow& hit = bank.closed_rows[(bank.closes - back) % bank.closed_rows.size()];
  const Time free = std::max(at, hit.column_from);
  const Time lead = write ? t.CWL : t.CL;
  const Time from = write ? free : read_from(channel, address, free);
  const Time begin = book_data(channel, address, from, write);
  const Time column = begin - lead;
  const Time done = write ? begin + t.burst + t.tWR : column + t.tRTP;
  Time later = std::max(hit.until, at_once ? column : done) - hit.until;
  if (write && !hit.dirty) {
    ++activity_.array_writes;
    later += t.tRP - t.tRPclean;
    hit.dirty = true;
  }
  hit.column_from = column + t.tCCDL;
  for (unsigned i = back; i > 0; --i) {
    ClosedRow& after = bank.closed_rows[(bank.closes - i) % bank.closed_rows.size()];
    after.until += later;
    if (i < back) after.column_from += later;
  }
  bank.column_from += later;
  bank.write_from += later;
  bank.precharge_from += later;
  ++activity_.row_hits;
  ++(write ? activity_.writes : activity_.reads);
  if (!write) channel.read_column = std::max(channel.read_column, column);
  if (!write) return begin + t.burst;
  return at_once ? done + t.tRP : done;
}

/// The earliest column command of a read after the last write to its rank and to its group.
Time FastBanks::read_from(const Channel& channel, DramAddress address, Time column) const {
  const auto turned = [&](const Turnaround& after, Time at) {
    const bool overlaps = at + timing_.CL + timing_.burst > after.write_data_begin;
    return at < after.read_from && overlaps ? after.read_from : at;
  };
  column = turned(channel.ranks[address.rank].turnaround, column);
  return turned(channel.groups[group_of(address)], column);
}

/// Closes the row for a refresh.
void FastBanks::end_epoch(Bank& bank) {
  if (bank.dirty) ++activity_.array_writes;
  bank.dirty = false;
  bank.row = closed;
}

/// Sorts posted writes in the order of FR-FCFS: writes to open rows, then all writes to the next
/// row of each bank, and so on. Equal ones stay in order of age.
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

/// Turn of a posted write: 0 if its row is open, else the number of its row in the bank.
std::uint32_t FastBanks::turn_of(const Channel& channel, std::uint32_t number) {
  const DramAddress& address = channel.posted[number].address;
  Turns& of_bank = turns_[address.bank];
  Posted& one = posted_[number];
  one.before = std::exchange(of_bank.last, number);
  if (channel.banks[address.bank].row == address.row) return one.turn = 0;
  for (std::uint32_t other = one.before; other != none; other = posted_[other].before)
    if (channel.posted[other].address.row == address.row) return one.turn = posted_[other].turn;
  return one.turn = ++of_bank.turns;
}

/// Sets the earliest column command of writes: their data follow those of the last read.
void FastBanks::turn_to_writes(Channel& channel) const {
  const Timing& t = timing_;
  channel.write_from = channel.read_column + t.CL + t.burst + t.tRTRS - std::min(t.CWL, t.CL);
}

/// Time of the first command of an access to `row`, at or after `at`.
Time FastBanks::first_command(const Bank& bank, std::uint64_t row, Time at) {
  if (bank.row == row) return std::max(at, bank.column_from);
  return std::max(at, bank.row == closed ? bank.activate_from : bank.precharge_from);
}

/// Earliest time, from `at` on, at which a row of the bank can be activated. The open row is closed
/// first.
Time FastBanks::activate_from(const Bank& bank, Time at) const {
  if (bank.row == closed) return std::max(at, bank.activate_from);
  return std::max(at, bank.precharge_from) + (bank.dirty ? timing_.tRP : timing_.tRPclean);
}

/// Drains the posted writes whose first command can be issued after the last read and before
/// `until`.
void FastBanks::write_while_idle(Channel& channel, Time until) {
  if (channel.posted.size() < controller_.drain_idle || channel.read_column >= until) return;
  turn_to_writes(channel);
  std::erase_if(channel.posted, [&](const Write& write) {
    const Time from = first_command(channel.banks[write.address.bank], write.address.row,
                                    std::max(write.at, channel.read_column));
    if (from >= until) return false;
    access(channel, write.address, from, true);
    channel.banks[write.address.bank]
        .closed_rows = {}; // no access waits for the row that it closed
    return true;
  });
}

Time FastBanks::write_batch(Channel& channel, Time at, std::size_t left) {
  order_posted(channel);
  const auto end =
      channel.posted.begin() + static_cast<std::ptrdiff_t>(channel.posted.size() - left);
  Time done = at;
  for (auto write = channel.posted.begin(); write != end; ++write) {
    done = std::max(done, access(channel, write->address, at, true));
    Bank& bank = channel.banks[write->address.bank];
    bank.closed_rows = {}; // no access waits for the row that it closed
    channel.drained = std::max(channel.drained, bank.last_used);
  }
  channel.reads_alone_from = std::max(channel.reads_alone_from, channel.drained);
  channel.posted.erase(channel.posted.begin(), end);
  return done;
}

Time FastBanks::post(Time at, std::uint64_t line) {
  const DramAddress address = decoder_.decode(line);
  Channel& channel = channels_[address.channel];
  if (!channel.posted.empty()) write_while_idle(channel, at);
  channel.posted.push_back({address, at});
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
    for (std::uint32_t number = 0; number < channel.ranks.size(); ++number) {
      Rank& rank = channel.ranks[number];
      if (end >= rank.refresh_at) refresh(channel, number, end);
      if (rank.any_open) account_open(rank, rank.open_since, end);
    }
    for (Bank& bank : channel.banks)
      if (bank.row != closed) end_epoch(bank);
  }
}

} // namespace nearfar::sim
