// A command that a channel may issue next.
#pragma once

#include <cstddef>

#include "sim/command.hpp"
#include "sim/completion.hpp"

namespace nearfar::sim {

/// Order of commands that are legal at the same time: the smallest value is issued.
enum class Priority : unsigned char { refresh, column, activate, precharge, power };

struct ChannelCandidate {
  Time at = never;
  Priority priority = Priority::refresh;
  Act act = Act::activate;
  bool posted = false;    ///< the request is in the queue of posted writes
  std::uint32_t bank = 0; ///< number in the channel. Refresh: a bank of the set. Power states: the
                          ///< first bank of the rank
  std::size_t index = 0;  ///< index of the request in its queue

  /// Replaces this candidate if `other` is legal earlier, or at the same time with higher priority.
  void offer(const ChannelCandidate& other) {
    if (other.at < at || (other.at == at && other.priority < priority)) *this = other;
  }
};

} // namespace nearfar::sim
