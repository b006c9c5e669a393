#include "crash/persistency.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace nearfar::crash {

using storelog::Event;
using storelog::EventKind;

namespace {

void await(PendingLine& pending, std::uint16_t thread) {
  const auto all = static_cast<std::uint32_t>(pending.pieces.size());
  for (auto& [who, pieces] : pending.awaiting)
    if (who == thread) {
      pieces = all;
      return;
    }
  pending.awaiting.emplace_back(thread, all);
}

/// Of all models of this thread.
std::uint64_t next_generation() {
  thread_local std::uint64_t last = 0;
  return ++last;
}

/// Where the piece at `at` of a store ends: at a multiple of 8 bytes, or with the store.
std::uint64_t end_of_piece(std::uint64_t at, std::uint64_t end) {
  return std::min(end, (at / 8 + 1) * 8);
}

} // namespace

Persistency::Persistency(const storelog::Log& log, CacheLoss loss, std::span<std::byte> durable,
                         std::vector<PendingLine> carried, bool recovery)
    : log_(log), loss_(loss), recovery_(recovery), durable_(durable), pending_(std::move(carried)) {
  for (PendingLine& line : pending_) {
    line.generation = next_generation();
    line.awaiting.clear(); // threads and their fences are gone with the crash
  }
  index_pending();
}

bool Persistency::next() {
  if (at_end_) return false;
  if (before_point_) pass_point();
  if (torn()) return true;
  for (; event_ < log_.events.size(); ++event_) {
    const Event& event = log_.events[event_];
    if (is_point(event)) {
      before_point_ = true;
      return true;
    }
    pass(event);
  }
  at_end_ = true;
  return true;
}

bool Persistency::is_point(const Event& event) const {
  if (stores(event) && survives(event)) return true;
  if (event.kind == EventKind::fence) return would_drain(event.thread);
  return would_transfer(event);
}

/// Whether the stores of the event's host outlive the crash, in its caches.
bool Persistency::survives(const Event& event) const {
  switch (loss_) {
  case CacheLoss::all: return false;
  case CacheLoss::none: return true;
  case CacheLoss::host_0: return event.host != 0;
  case CacheLoss::host_1: return event.host != 1;
  }
  return false;
}

/// Passes the event of the failure point; of a store that survives, its next piece.
void Persistency::pass_point() {
  const Event& event = log_.events[event_];
  if (stores(event) && survives(event)) {
    if (settled_ == 0) transfer(event);
    settle_piece(event);
    if (settled_ < event.bytes) return;
    settled_ = 0;
  } else {
    pass(event);
  }
  ++event_;
  before_point_ = false;
}

void Persistency::pass(const Event& event) {
  switch (event.kind) {
  case EventKind::store:
  case EventKind::nt_store:
    transfer(event);
    add_store(event, event.kind == EventKind::nt_store);
    break;
  case EventKind::load: transfer(event); break;
  case EventKind::flush: flush(event); break;
  case EventKind::fence: drain(event.thread); break;
  case EventKind::log:
  case EventKind::begin:
  case EventKind::end:
  case EventKind::tx_begin:
  case EventKind::tx_end: break;
  }
}

const PendingLine* Persistency::find(std::uint32_t line) const {
  const auto slot = slots_.find(line);
  return slot == slots_.end() ? nullptr : &pending_[slot->second];
}

PendingLine* Persistency::find(std::uint32_t line) {
  return const_cast<PendingLine*>(std::as_const(*this).find(line));
}

/// Calls visit(line) for each pending line that the event touches.
template <class Visit>
void Persistency::each_pending(const Event& event, Visit visit) {
  const std::uint64_t first = event.address / line_bytes;
  const std::uint64_t last = (event.address + event.bytes - 1) / line_bytes;
  if (last - first < pending_.size()) {
    for (std::uint64_t line = first; line <= last; ++line)
      if (PendingLine* pending = find(static_cast<std::uint32_t>(line))) visit(*pending);
    return;
  }
  for (PendingLine& pending : pending_)
    if (pending.line >= first && pending.line <= last) visit(pending);
}

/// Whether the access makes the other host write back a line.
bool Persistency::would_transfer(const Event& event) const {
  if (!stores(event) && event.kind != EventKind::load) return false;
  for (std::uint64_t line = event.address / line_bytes;
       line * line_bytes < event.address + event.bytes; ++line)
    if (const PendingLine* pending = find(static_cast<std::uint32_t>(line)))
      if (pending->host != event.host) return true;
  return false;
}

void Persistency::transfer(const Event& event) {
  if (!would_transfer(event)) return;
  each_pending(event, [&](PendingLine& pending) {
    if (pending.host == event.host) return;
    make_durable(pending, pending.pieces.size());
    pending.awaiting.clear();
  });
  forget_empty();
}

void Persistency::index_pending() {
  slots_.clear();
  for (std::size_t slot = 0; slot < pending_.size(); ++slot)
    slots_.emplace(pending_[slot].line, slot);
}

void Persistency::add_store(const Event& event, bool non_temporal) {
  const std::byte* data = log_.data.data() + event.data;
  std::uint64_t at = event.address;
  const std::uint64_t end = at + event.bytes;
  while (at < end) {
    const std::uint64_t piece_end = end_of_piece(at, end);
    const auto line = static_cast<std::uint32_t>(at / line_bytes);
    PendingLine* pending = find(line);
    if (pending == nullptr) {
      slots_.emplace(line, pending_.size());
      pending = &pending_.emplace_back(PendingLine{line, next_generation(), {}, event.host, {}});
    }
    pending->pieces.push_back({static_cast<std::uint32_t>(&event - log_.events.data()),
                               static_cast<std::uint8_t>(at % line_bytes),
                               static_cast<std::uint8_t>(piece_end - at), recovery_,
                               data + (at - event.address)});
    if (non_temporal) await(*pending, event.thread);
    at = piece_end;
  }
}

void Persistency::settle_piece(const Event& event) {
  const std::uint64_t at = event.address + settled_;
  const std::uint64_t end = end_of_piece(at, event.address + event.bytes);
  const auto line = static_cast<std::uint32_t>(at / line_bytes);
  const Changed before{line, version({line, 0, {}, {}, {}}, 0)};
  changed_.push_back(before);
  if (settled_ == 0) before_torn_.clear();
  if (before_torn_.empty() || before_torn_.back().line != line) before_torn_.push_back(before);
  std::memcpy(durable_.data() + at, log_.data.data() + event.data + settled_, end - at);
  settled_ += static_cast<std::uint32_t>(end - at);
}

void Persistency::flush(const Event& event) {
  each_pending(event, [&](PendingLine& pending) {
    if (pending.host == event.host) await(pending, event.thread);
  });
}

bool Persistency::would_drain(std::uint16_t thread) const {
  return std::any_of(pending_.begin(), pending_.end(), [&](const PendingLine& pending) {
    return std::any_of(pending.awaiting.begin(), pending.awaiting.end(),
                       [&](const auto& entry) { return entry.first == thread; });
  });
}

void Persistency::drain(std::uint16_t thread) {
  for (PendingLine& pending : pending_) {
    std::uint32_t drained = 0;
    for (const auto& [who, pieces] : pending.awaiting)
      if (who == thread) drained = pieces;
    if (drained == 0) continue;
    make_durable(pending, drained);
    std::erase_if(pending.awaiting, [&](auto& entry) {
      entry.second = entry.second > drained ? entry.second - drained : 0;
      return entry.second == 0;
    });
  }
  forget_empty();
}

void Persistency::forget_empty() {
  if (std::erase_if(pending_, [](const PendingLine& pending) { return pending.pieces.empty(); }) >
      0)
    index_pending();
}

void Persistency::make_durable(PendingLine& pending, std::size_t pieces) {
  const Line now = version(pending, pieces);
  changed_.push_back({pending.line, version(pending, 0)});
  std::memcpy(durable_.data() + std::size_t{pending.line} * line_bytes, now.data(), line_bytes);
  pending.generation = next_generation();
  pending.pieces.erase(pending.pieces.begin(),
                       pending.pieces.begin() + static_cast<std::ptrdiff_t>(pieces));
}

Line Persistency::version(const PendingLine& pending, std::size_t pieces) const {
  Line line;
  std::memcpy(line.data(), durable_.data() + std::size_t{pending.line} * line_bytes, line_bytes);
  for (std::size_t i = 0; i < pieces; ++i)
    pending.pieces[i].put(line);
  return line;
}

std::vector<Changed> Persistency::take_changed() { return std::exchange(changed_, {}); }

} // namespace nearfar::crash
