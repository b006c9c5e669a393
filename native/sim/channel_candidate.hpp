// A command that a channel could issue next.
#pragma once

#include <cstddef>

#include "sim/command.hpp"
#include "sim/completion.hpp"

namespace nearfar::sim {

/// Of commands that can issue at the same time, the one with the smallest value issues.
enum class Priority : unsigned char { refresh, column, activate, precharge, power };

struct ChannelCandidate {
  Time at = never;
  Priority priority = Priority::refresh;
  Act act = Act::activate;
  bool posted = false;    ///< the request is one of the posted writes
  std::uint32_t bank = 0; ///< of the channel; of a refresh, one of those that it refreshes;
                          ///< of a command of a rank, its first
  std::size_t index = 0;  ///< of the request in its queue

  /// Takes the place of this candidate if it can be issued earlier, or has the higher priority.
  void offer(const ChannelCandidate& other) {
    if (other.at < at || (other.at == at && other.priority < priority)) *this = other;
  }
};

} // namespace nearfar::sim
