// Distributes the batches of lanes among threads.
//
// A thread runs a chunk of a lane, then takes the lane with the most requests left. Threads thus
// share few lanes evenly, also while one of them reads the next batch.
// Thread safety  any number of threads; a lane is run by one at a time.
#pragma once

#include <algorithm>
#include <mutex>
#include <span>
#include <vector>

#include "sim/lane.hpp"

namespace nearfar::sim {

class LaneScheduler {
public:
  explicit LaneScheduler(std::span<Lane* const> lanes) : waiting_(lanes.begin(), lanes.end()) {}

  /// Runs lanes until none that waits has a request left.
  void run() {
    for (Lane* lane = exchange(nullptr); lane; lane = exchange(lane))
      lane->run(chunk);
  }

private:
  static constexpr std::size_t chunk = 512;

  /// Returns `ran`, if it is not null, to the waiting lanes. Takes the one with the most requests
  /// left.
  Lane* exchange(Lane* ran) {
    const std::lock_guard lock(mutex_);
    if (ran && ran->left()) waiting_.push_back(ran);
    const auto most = std::ranges::max_element(waiting_, {}, &Lane::left);
    if (most == waiting_.end() || (*most)->left() == 0) return nullptr;
    Lane* const taken = *most;
    *most = waiting_.back();
    waiting_.pop_back();
    return taken;
  }

  std::mutex mutex_;
  std::vector<Lane*> waiting_;
};

} // namespace nearfar::sim
