// A command that a channel may issue next.
#pragma once

#include <cstddef>

#include "sim/command.hpp"
#include "sim/completion.hpp"

namespace nearfar::sim {

/// Priority of commands that are legal at the same time, highest first.
enum class Priority : unsigned char { refresh, column, activate, precharge, power };

struct ChannelCandidate {
  Time at = never;
  Priority priority = Priority::refresh;
  CommandType type = CommandType::activate;
  /// Number in the channel. Refresh: any bank of the refresh set. Power states: the first bank of
  /// the rank.
  std::uint32_t bank = 0;
  /// The request of an activate or a column command: whether it is in the queue of posted writes,
  /// and its index in its queue.
  bool posted = false;
  std::size_t index = 0;

  /// Replaces this candidate if `other` is legal earlier, or at the same time with higher priority.
  void offer(const ChannelCandidate& other) {
    if (other.at < at || (other.at == at && other.priority < priority)) *this = other;
  }
};

} // namespace nearfar::sim
