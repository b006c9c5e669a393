#include "sim/exact_channel.hpp"

#include <algorithm>

namespace nearfar::sim {

namespace {

// Among commands that can go at the same time the lower goes first.
constexpr unsigned refresh_first = 0;
constexpr unsigned column_next = 1;
constexpr unsigned activate_next = 2;
constexpr unsigned precharge_last = 3;

} // namespace

ExactChannel::ExactChannel(const Device& device, const Controller& controller, std::uint32_t number)
    : timing_(device.timing), controller_(controller), number_(number),
      groups_(static_cast<std::uint32_t>(device.shape.groups)) {
  const auto banks = static_cast<std::uint32_t>(device.shape.banks);
  const auto ranks = static_cast<std::uint32_t>(device.shape.ranks);
  banks_.resize(std::size_t{ranks} * groups_ * banks);
  for (std::uint32_t i = 0; i < banks_.size(); ++i) {
    banks_[i].rank = i / (groups_ * banks);
    banks_[i].group = i / banks; // counted through all ranks
  }
  group_state_.resize(std::size_t{ranks} * groups_);
  ranks_.resize(ranks);
  if (timing_.tREFI)
    for (Rank& rank : ranks_)
      rank.refresh_at = timing_.tREFI;
}

void ExactChannel::demand(std::uint64_t id, Time at, const Place& place, bool write) {
  const Time arrival = (at + timing_.clock - 1) / timing_.clock * timing_.clock;
  demands_.push_back({id, arrival, place, write, false});
  flushing_ = false;
  known_ = false;
}

void ExactChannel::post(Time at, const Place& place) {
  const Time arrival = (at + timing_.clock - 1) / timing_.clock * timing_.clock;
  posted_.push_back({0, arrival, place, true, false});
  flushing_ = false;
  known_ = false;
}

void ExactChannel::consider(const Choice& candidate) {
  if (candidate.at < choice_.at ||
      (candidate.at == choice_.at && candidate.urgency < choice_.urgency))
    choice_ = candidate;
}

void ExactChannel::set_draining(bool draining) {
  unfinished_ |= draining != draining_;
  draining_ = draining;
}

void ExactChannel::choose_mode() {
  bool draining = draining_;
  if (draining && !flushing_ && posted_.size() <= controller_.drain_to) draining = false;
  if (posted_.size() >= controller_.drain_from || (flushing_ && demands_.empty())) draining = true;
  set_draining(draining && !posted_.empty());
}

void ExactChannel::want_row(const Waiting& request) {
  Bank& bank = banks_[request.place.bank];
  if (bank.row != request.place.row) return;
  bank.wanted_from =
      bank.wanted == mark_ ? std::min(bank.wanted_from, request.arrival) : request.arrival;
  bank.wanted = mark_;
}

void ExactChannel::choose() {
  known_ = true;
  choice_ = Choice{};
  choose_mode();
  const std::vector<Waiting>& active = requests(draining_);
  if (active.empty()) return;
  ++mark_;
  for (const Waiting& request : active)
    want_row(request);
  if (unfinished_) consider_unfinished();
  for (std::size_t i = 0; i < active.size(); ++i)
    consider_request(i);
  if (controller_.page == PagePolicy::timeout) consider_idle_rows();
  if (timing_.tREFI)
    for (std::uint32_t i = 0; i < ranks_.size(); ++i)
      consider_refresh(i);
}

/// Requests of the kind that no longer goes, whose rows were opened for them before the change.
void ExactChannel::consider_unfinished() {
  const std::vector<Waiting>& others = requests(!draining_);
  unfinished_ = false;
  for (std::size_t i = 0; i < others.size(); ++i)
    if (has_own_row(others[i])) {
      unfinished_ = true;
      want_row(others[i]);
      consider_column(!draining_, i);
    }
}

void ExactChannel::consider_column(bool posted, std::size_t index) {
  const Waiting& request = requests(posted)[index];
  Choice candidate;
  candidate.urgency = column_next;
  candidate.act = request.write ? Act::write : Act::read;
  candidate.posted = posted;
  candidate.bank = request.place.bank;
  candidate.index = index;
  candidate.at = std::max({column_time(request), request.arrival, command_from_});
  if (candidate.at < ranks_[banks_[candidate.bank].rank].refresh_at) consider(candidate);
}

void ExactChannel::consider_request(std::size_t index) {
  const Waiting& request = requests(draining_)[index];
  Bank& bank = banks_[request.place.bank];
  if (bank.row == request.place.row) {
    if (!unfinished_) consider_column(draining_, index);
    return;
  }
  if (bank.claimed == mark_) return; // an older request opens another row first
  bank.claimed = mark_;
  Choice candidate;
  candidate.posted = draining_;
  candidate.bank = request.place.bank;
  candidate.index = index;
  if (bank.row == closed) {
    candidate.act = Act::activate;
    candidate.urgency = activate_next;
    candidate.at = activate_time(bank);
  } else {
    candidate.act = Act::precharge;
    candidate.urgency = precharge_last;
    candidate.at = precharge_time(bank);
  }
  candidate.at = std::max({candidate.at, request.arrival, command_from_});
  if (candidate.act == Act::precharge && bank.wanted == mark_ && bank.wanted_from <= candidate.at)
    return;
  if (candidate.at < ranks_[bank.rank].refresh_at) consider(candidate);
}

/// A rank whose refresh is due: its rows are closed, then it is refreshed.
void ExactChannel::consider_refresh(std::uint32_t number) {
  const Rank& rank = ranks_[number];
  Choice candidate;
  candidate.urgency = refresh_first;
  const Time from = std::max(rank.refresh_at, command_from_);
  if (from > choice_.at) return;
  Time all_closed = from;
  const auto per_rank = static_cast<std::uint32_t>(banks_.size() / ranks_.size());
  for (std::uint32_t i = number * per_rank; i < (number + 1) * per_rank; ++i) {
    const Bank& bank = banks_[i];
    if (bank.row != closed) {
      candidate.act = Act::precharge;
      candidate.bank = i;
      candidate.at = std::max(from, precharge_time(bank));
      consider(candidate);
    }
    all_closed = std::max(all_closed, bank.activate_from);
  }
  if (rank.open) return;
  candidate.act = Act::refresh;
  candidate.bank = number;
  candidate.at = all_closed;
  consider(candidate);
}

void ExactChannel::consider_idle_rows() {
  for (std::uint32_t i = 0; i < banks_.size(); ++i) {
    const Bank& bank = banks_[i];
    if (bank.row == closed || bank.wanted == mark_) continue;
    Choice candidate;
    candidate.act = Act::precharge;
    candidate.urgency = precharge_last;
    candidate.bank = i;
    candidate.at =
        std::max({bank.last_used + controller_.timeout, precharge_time(bank), command_from_});
    if (candidate.at < ranks_[bank.rank].refresh_at) consider(candidate);
  }
}

Time ExactChannel::column_time(const Waiting& request) const {
  const Bank& bank = banks_[request.place.bank];
  const Group& group = group_state_[bank.group];
  const Time lead = request.write ? timing_.CWL : timing_.CL;
  Time from = std::max({bank.column_from, group.column_from, column_from_});
  if (!request.write) from = std::max({from, group.read_from, ranks_[bank.rank].read_from});
  const bool turns = bank.rank != data_rank_ || request.write != data_write_;
  const Time data_from = data_until_ ? data_until_ + (turns ? timing_.tRTRS : 0) : 0;
  return std::max(from, data_from > lead ? data_from - lead : 0);
}

Time ExactChannel::activate_time(const Bank& bank) const {
  const Rank& rank = ranks_[bank.rank];
  return std::max({bank.activate_from, group_state_[bank.group].activate_from, rank.activate_from,
                   rank.windows[rank.oldest], rank.blocked_until});
}

Time ExactChannel::precharge_time(const Bank& bank) const {
  return bank.dirty ? std::max(bank.precharge_from, ranks_[bank.rank].array_write_from)
                    : bank.precharge_from;
}

void ExactChannel::log(Act act, const Bank& bank, Time at, bool automatic) {
  if (!recorded_) return;
  const auto index = static_cast<std::uint32_t>(&bank - banks_.data());
  recorded_->push_back(
      {at, act, automatic, number_, bank.rank, bank.group % groups_, index, bank.row});
}

void ExactChannel::activate(Bank& bank, std::uint64_t row, Time at) {
  Rank& rank = ranks_[bank.rank];
  bank.row = row;
  bank.dirty = false;
  bank.column_from = at + timing_.tRCD;
  bank.precharge_from = at + timing_.tRAS;
  bank.last_used = at;
  group_state_[bank.group].activate_from = at + timing_.tRRDL;
  rank.activate_from = at + timing_.tRRD;
  rank.windows[rank.oldest] = at + timing_.tFAW;
  rank.oldest = (rank.oldest + 1) % 4;
  if (rank.open++ == 0 && at > rank.open_until) {
    work_.active += rank.open_until - rank.open_since;
    rank.open_since = at;
  }
  ++work_.activates;
  log(Act::activate, bank, at, false);
}

void ExactChannel::precharge(Bank& bank, Time at, bool automatic) {
  Rank& rank = ranks_[bank.rank];
  log(Act::precharge, bank, at, automatic);
  if (bank.dirty) {
    ++work_.array_writes;
    rank.array_write_from = at + timing_.tRRDpre;
  }
  bank.activate_from = at + (bank.dirty ? timing_.tRP : timing_.tRPclean);
  bank.row = closed;
  bank.dirty = false;
  --rank.open;
  rank.open_until = std::max(rank.open_until, at);
}

void ExactChannel::refresh(std::uint32_t number, Time at) {
  Rank& rank = ranks_[number];
  ++work_.refreshes;
  rank.blocked_until = at + timing_.tRFC;
  rank.refresh_at += timing_.tREFI;
  if (recorded_) recorded_->push_back({at, Act::refresh, false, number_, number, 0, 0, 0});
}

/// Does another request that waits when the column command goes want the same row?
bool ExactChannel::wanted_by_others(const Choice& choice) const {
  const std::vector<Waiting>& waiting = choice.posted ? posted_ : demands_;
  const Waiting& request = waiting[choice.index];
  return std::any_of(waiting.begin(), waiting.end(), [&](const Waiting& other) {
    return &other != &request && other.arrival <= choice.at &&
           other.place.bank == request.place.bank && other.place.row == request.place.row;
  });
}

Completion ExactChannel::column(const Choice& choice) {
  std::vector<Waiting>& waiting = requests(choice.posted);
  const Waiting request = waiting[choice.index];
  Bank& bank = banks_[request.place.bank];
  Rank& rank = ranks_[bank.rank];
  Group& group = group_state_[bank.group];
  const Time at = choice.at;
  const Time end = at + (request.write ? timing_.CWL : timing_.CL) + timing_.burst;
  log(choice.act, bank, at, false);
  column_from_ = at + timing_.tCCD;
  group.column_from = at + timing_.tCCDL;
  data_until_ = end;
  data_rank_ = bank.rank;
  data_write_ = request.write;
  bank.last_used = at;
  Time done = end;
  if (request.write) {
    ++work_.writes;
    bank.dirty = true;
    done = end + timing_.tWR;
    bank.precharge_from = std::max(bank.precharge_from, done);
    rank.read_from = end + timing_.tWTR;
    group.read_from = end + timing_.tWTRL;
  } else {
    ++work_.reads;
    bank.precharge_from = std::max(bank.precharge_from, at + timing_.tRTP);
  }
  work_.row_hits += !request.opened;
  if (controller_.page == PagePolicy::closed && !wanted_by_others(choice)) {
    precharge(bank, precharge_time(bank), true);
    if (request.write) done = bank.activate_from;
  }
  waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(choice.index));
  return {request.id, done};
}

std::optional<Completion> ExactChannel::step() {
  if (!known_) choose();
  const Choice choice = choice_;
  known_ = false;
  if (choice.at == never) return std::nullopt;
  command_from_ = choice.at + timing_.clock;
  switch (choice.act) {
  case Act::activate: {
    Waiting& request = requests(choice.posted)[choice.index];
    request.opened = true;
    activate(banks_[choice.bank], request.place.row, choice.at);
    return std::nullopt;
  }
  case Act::precharge: precharge(banks_[choice.bank], choice.at, false); return std::nullopt;
  case Act::refresh: refresh(choice.bank, choice.at); return std::nullopt;
  case Act::read:
  case Act::write: break;
  }
  const Completion completion = column(choice);
  if (choice.posted) return std::nullopt;
  return completion;
}

void ExactChannel::finish(Time end) {
  for (Rank& rank : ranks_) {
    if (rank.open) // until the refresh that closes them
      rank.open_until = std::max(rank.open_until, std::min(end, rank.refresh_at));
    work_.active += rank.open_until - rank.open_since;
    rank.open_since = rank.open_until;
    if (timing_.tREFI && rank.refresh_at <= end) {
      const Time late = end - rank.refresh_at;
      work_.refreshes += late / timing_.tREFI + 1; // none of them made anyone wait
    }
  }
  for (Bank& bank : banks_)
    if (bank.row != closed && bank.dirty) {
      ++work_.array_writes;
      bank.dirty = false;
    }
}

} // namespace nearfar::sim
