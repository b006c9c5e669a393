// A region with counters of the CPU and the kernel: groups of events, opened by each thread.
//
// Units          sums over threads. A multiplexed group is scaled to all of the time, as by `perf
//                stat`; `share` is the fraction that was counted.
#pragma once

#include <string>
#include <vector>

#include "bench/region.hpp"
#include "os/counters.hpp"

namespace nearfar::bench {

/// One event of a group after the region.
struct Counted {
  std::string name;
  double value = 0;
  double share = 0; ///< of the time its group was wanted; 0: it never counted, value means nothing
};

class CountedRegion final : public MeasuredRegion {
public:
  using Names = std::vector<std::vector<std::string>>; ///< groups of names of libpfm4

  /// Errors: those of os::find_counter, and of os::CounterGroup::open on this thread.
  static Result<CountedRegion> create(const Names& groups, std::size_t threads);

  Status prepare(std::size_t thread) override;
  void begin(std::size_t thread) override;
  void end(std::size_t thread) override;

  /// After all threads have left it: sums by event, in the order of the names. Errors: os_error.
  Result<std::vector<Counted>> counted() const;

private:
  Names names_;
  std::vector<std::vector<os::CounterEvent>> events_;
  std::vector<std::vector<os::CounterGroup>> threads_;
};

} // namespace nearfar::bench
