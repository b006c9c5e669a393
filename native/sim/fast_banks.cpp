#include "sim/fast_banks.hpp"

#include <algorithm>

namespace nearfar::sim {

FastBanks::FastBanks(const Device& device, const Controller& controller)
    : timing_(device.timing), controller_(controller), decoder_(device.shape) {
  for (std::uint64_t c = 0; c < device.shape.channels; ++c) {
    Channel& channel = channels_.emplace_back(timing_);
    for (std::uint64_t r = 0; r < device.shape.ranks; ++r)
      channel.ranks.emplace_back(timing_);
    channel.banks.resize(device.shape.ranks * device.shape.groups * device.shape.banks);
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
  if (bank.row != closed)
    from = std::max(from, precharge(rank, bank, std::max(at, bank.precharge_from)));
  const Time activated = rank.activates.book(rank.windows.book(from));
  ++work_.activates;
  if (!rank.any_open && controller_.page != PagePolicy::closed) {
    rank.any_open = true;
    rank.open_since = activated;
  }
  bank.row = row;
  bank.dirty = false;
  bank.opened = activated;
  bank.column_from = activated + timing_.tRCD;
  bank.precharge_from = activated + timing_.tRAS;
}

/// Rows that close by themselves close when somebody next looks: at once if this request was not
/// yet waiting for the row when it was last used, or after its idle time.
void FastBanks::close_lazily(Rank& rank, Bank& bank, Time at, std::uint64_t row) {
  const bool at_once = controller_.page == PagePolicy::closed;
  const Time keeps = bank.last_used + (at_once ? 0 : controller_.timeout);
  if (at <= keeps && (bank.row == row || !at_once)) return;
  const Time closing = std::max(bank.precharge_from, keeps);
  bank.activate_from = precharge(rank, bank, closing);
  bank.row = closed;
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
    bank.epoch = rank.epoch;
  }
  if (controller_.page != PagePolicy::open && bank.row != closed)
    close_lazily(rank, bank, at, place.row);
  if (bank.row == place.row)
    ++work_.row_hits;
  else
    open_row(rank, bank, at, place.row);

  Time column = std::max(at, bank.column_from);
  if (!write && column < rank.read_from && column + t.CL + t.burst > rank.write_data_begin)
    column = rank.read_from;
  const Time lead = write ? t.CWL : t.CL;
  const Time begin = channel.bus.book(column + lead);
  const Time end = begin + t.burst;
  column = begin - lead;
  bank.column_from = column + t.tCCDL;
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
  rank.write_data_begin = begin;
  rank.read_from = end + t.tWTR;
  return controller_.page == PagePolicy::closed ? bank.precharge_from + t.tRP : end + t.tWR;
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
  turns_.assign(channel.banks.size(), 0);
  keyed_.clear();
  for (const Place& place : channel.posted) {
    unsigned turn = 0;
    if (channel.banks[place.bank].row != place.row) {
      const auto same_row = [&](const auto& other) {
        return other.second.bank == place.bank && other.second.row == place.row;
      };
      const auto before = std::find_if(keyed_.begin(), keyed_.end(), same_row);
      turn = before != keyed_.end() ? before->first : ++turns_[place.bank];
    }
    keyed_.emplace_back(turn, place);
  }
  std::stable_sort(keyed_.begin(), keyed_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < keyed_.size(); ++i)
    channel.posted[i] = keyed_[i].second;
}

Time FastBanks::write_batch(Channel& channel, Time at, std::size_t left) {
  order_posted(channel);
  const auto end =
      channel.posted.begin() + static_cast<std::ptrdiff_t>(channel.posted.size() - left);
  Time done = at;
  channel.draining = at;
  for (auto place = channel.posted.begin(); place != end; ++place) {
    done = std::max(done, access(channel, *place, at, true));
    channel.drained = std::max(channel.drained, channel.banks[place->bank].last_used);
  }
  channel.posted.erase(channel.posted.begin(), end);
  return done;
}

Time FastBanks::post(Time at, std::uint64_t line) {
  const Place place = decoder_.place(line);
  Channel& channel = channels_[place.channel];
  channel.posted.push_back(place);
  if (channel.posted.size() < controller_.drain_from) return at;
  const Time on = std::max(at, channel.drained_before);
  channel.drained_before = channel.drained;
  write_batch(channel, std::max({at, channel.drained, channel.read_column}), controller_.drain_to);
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
