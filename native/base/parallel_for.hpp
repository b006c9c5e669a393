// Independent pieces of work, done by several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace nearfar {

/// Calls `first()` once in the calling thread and `work(i)` once for each i below `count`, with at
/// most `threads` threads at once; returns when all are done. Neither may throw.
template <class First, class Work>
void parallel_for_after(const First& first, std::size_t count, std::size_t threads,
                        const Work& work) {
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++)
      work(i);
  };
  std::vector<std::jthread> others; // joined when it goes out of scope
  for (std::size_t i = 1; i < std::min(threads, count + 1); ++i)
    others.emplace_back(run);
  first();
  run();
}

/// The same without `first`, by as many threads as there are CPUs for this process.
template <class Work>
void parallel_for(std::size_t count, const Work& work) {
  const std::size_t threads = std::min<std::size_t>(std::thread::hardware_concurrency(), count);
  parallel_for_after([] {}, count, threads, work);
}

} // namespace nearfar
