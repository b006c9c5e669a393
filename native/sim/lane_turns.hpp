// Shares the batches of lanes out among threads.
//
// A thread runs a lane in chunks, and takes the lane that has most requests left. So threads share
// the work of few lanes evenly, also while one of them reads the next batch.
// Thread safety  any number of threads; a lane is run by one at a time.
#pragma once

#include <algorithm>
#include <mutex>
#include <span>
#include <vector>

#include "sim/lane.hpp"

namespace nearfar::sim {

class LaneTurns {
public:
  explicit LaneTurns(std::span<Lane* const> lanes) : waiting_(lanes.begin(), lanes.end()) {}

  /// Runs lanes until none that waits has a request left.
  void run() {
    for (Lane* lane = exchange(nullptr); lane; lane = exchange(lane))
      lane->run(chunk);
  }

private:
  static constexpr std::size_t chunk = 512;

  /// Gives `ran` back, if it is not null, and takes the lane that has most requests left.
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
