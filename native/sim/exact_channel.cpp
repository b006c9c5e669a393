#include "sim/exact_channel.hpp"

namespace nearfar::sim {

ExactChannel::ExactChannel(const Device& device, const Controller& controller, std::uint32_t number)
    : timing_(device), refreshes_(device), rows_(device, controller, timing_.banks().size()),
      scheduler_(device, controller), statistics_(timing_, number) {}

void ExactChannel::add(bool posted, std::uint64_t id, Time at, const DramAddress& address,
                       bool write) {
  queues_.of(posted).push_back({id, timing_.clock_edge(at), address, write, false});
  chosen_ = false;
}

void ExactChannel::demand(std::uint64_t id, Time at, const DramAddress& address, bool write) {
  add(false, id, at, address, write);
}

void ExactChannel::post(Time at, const DramAddress& address) { add(true, 0, at, address, true); }

void ExactChannel::choose() {
  choice_ = scheduler_.choose(queues_, timing_, refreshes_, rows_);
  chosen_ = true;
}

void ExactChannel::precharge(std::uint32_t bank, Time at, bool automatic) {
  statistics_.precharging(timing_, bank, at, automatic);
  timing_.precharge(bank, at);
}

Completion ExactChannel::column(const ChannelCandidate& choice) {
  std::vector<ChannelRequest>& queue = queues_.of(choice.posted);
  const ChannelRequest request = queue[choice.index];
  statistics_.column(timing_, request, choice.at);
  Time done = timing_.column(request, choice.at);
  if (rows_.closes_after(queue, choice.index, choice.at)) {
    precharge(choice.bank, timing_.precharge_time(timing_.bank(choice.bank)), true);
    if (request.write) done = timing_.bank(choice.bank).activate_from;
  }
  queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(choice.index));
  return {request.id, done};
}

void ExactChannel::sleep(std::uint32_t rank, RankState state, Time at) {
  timing_.sleep(rank, state, at);
  statistics_.asleep(timing_, rank * timing_.banks_per_rank(), at);
}

void ExactChannel::wake(std::uint32_t rank, Time at) {
  statistics_.waking(timing_, rank * timing_.banks_per_rank(), at);
  if (timing_.ranks()[rank].state == RankState::self_refresh)
    refreshes_.complete_self_refresh(rank, at);
  timing_.wake(rank, at);
}

std::optional<Completion> ExactChannel::step() {
  if (!chosen_) choose();
  chosen_ = false;
  if (choice_.at == never) return std::nullopt;
  return issue(choice_);
}

std::optional<Completion> ExactChannel::issue(const ChannelCandidate choice) {
  timing_.occupy_command_bus(choice.type, choice.at);
  switch (choice.type) {
  case CommandType::activate: {
    ChannelRequest& request = queues_.of(choice.posted)[choice.index];
    request.caused_activate = true;
    timing_.activate(choice.bank, request.address.row, choice.at);
    statistics_.activated(timing_, choice.bank, choice.at);
    return std::nullopt;
  }
  case CommandType::precharge: precharge(choice.bank, choice.at, false); return std::nullopt;
  case CommandType::refresh:
    refreshes_.refresh(choice.bank, timing_, choice.at);
    statistics_.refreshed(timing_, choice.bank, choice.at);
    return std::nullopt;
  case CommandType::power_down:
    sleep(timing_.bank(choice.bank).rank, RankState::power_down, choice.at);
    return std::nullopt;
  case CommandType::self_refresh:
    sleep(timing_.bank(choice.bank).rank, RankState::self_refresh, choice.at);
    return std::nullopt;
  case CommandType::wake: wake(timing_.bank(choice.bank).rank, choice.at); return std::nullopt;
  case CommandType::read:
  case CommandType::write: break;
  }
  const Completion completion = column(choice);
  if (choice.posted) return std::nullopt;
  return completion;
}

void ExactChannel::finish(Time end) {
  for (;;) {
    const ChannelCandidate next = scheduler_.choose_idle(queues_, timing_, refreshes_, rows_);
    if (next.at > end) break;
    issue(next);
  }
  for (std::uint32_t rank = 0; rank < timing_.ranks().size(); ++rank)
    statistics_.finish_rank(timing_, rank, end);
  statistics_.finish_banks(timing_);
}

} // namespace nearfar::sim
