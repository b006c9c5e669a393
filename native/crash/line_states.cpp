#include "crash/line_states.hpp"

#include <cstring>
#include <utility>

#include "crash/sections.hpp"

namespace nearfar::crash {

using os::page_bytes;
using storelog::line_bytes;

namespace {

std::uint64_t lines_of(std::uint64_t pool_bytes) { return pool_bytes / line_bytes + 1; }

/// Of several transactions that log bytes of one line, each has a state.
std::uint64_t states_of(std::uint64_t pool_bytes) { return 2 * lines_of(pool_bytes) + 1024; }

} // namespace

std::size_t LineStates::memory_bytes(std::uint64_t pool_bytes) {
  return Sections::bytes<Head>(1) + Sections::bytes<bool>(pool_bytes / page_bytes + 1) +
         Sections::bytes<std::uint32_t>(lines_of(pool_bytes)) +
         Sections::bytes<LineState>(states_of(pool_bytes));
}

LineStates::LineStates(void* memory, std::uint64_t pool_bytes) : pool_bytes_(pool_bytes) {
  Sections sections(memory);
  head_ = sections.next<Head>(1);
  page_has_states_ = sections.next<bool>(pool_bytes / page_bytes + 1);
  states_of_lines_ = sections.next<std::uint32_t>(lines_of(pool_bytes));
  states_ = sections.next<LineState>(states_of(pool_bytes));
}

std::uint32_t LineStates::new_state() {
  const std::uint32_t number = head_->unused;
  if (number == 0) return head_->states + 1 < states_of(pool_bytes_) ? ++head_->states : 0;
  head_->unused = states_[number].next;
  // The rest is of words that are not durable.
  std::memset(&states_[number], 0, offsetof(LineState, site));
  return number;
}

void LineStates::forget(std::uint64_t line) {
  std::uint32_t number = std::exchange(states_of_lines_[line], 0);
  while (number != 0) {
    const std::uint32_t next = std::exchange(states_[number].next, head_->unused);
    head_->unused = std::exchange(number, next);
  }
}

void LineStates::forget_all() {
  for (std::uint64_t page = 0; page <= pool_bytes_ / page_bytes; ++page) {
    if (!page_has_states_[page]) continue;
    for (std::uint64_t at = 0; at < page_bytes; at += line_bytes)
      if (const std::uint64_t line = (page * page_bytes + at) / line_bytes;
          line < lines_of(pool_bytes_))
        forget(line);
  }
}

} // namespace nearfar::crash
