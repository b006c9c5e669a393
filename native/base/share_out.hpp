// Pieces of work that know nothing of each other, done by as many threads as there are processors
// for this process.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace nearfar {

/// Calls `work(i)` once for each i below `count`, from several threads at once; returns when all
/// are done. `work` must not throw.
template <class Work>
void share_out(std::size_t count, const Work& work) {
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++)
      work(i);
  };
  const std::size_t threads = std::min<std::size_t>(std::thread::hardware_concurrency(), count);
  std::vector<std::jthread> others; // joined when it goes out of scope
  for (std::size_t i = 1; i < threads; ++i)
    others.emplace_back(run);
  run();
}

} // namespace nearfar
