// Threads that copy on two memories at once, after the competition benchmarks of the Oslo thesis.
//
// Near threads copy near -> near; far threads far -> far, far -> near or near -> far. Each thread
// has a source and a destination of its own and copies all of it repeatedly, without
// synchronization after the start. The time of each iteration is kept, with the thread's resource
// usage.
//
// Thread safety  one CompeteBench a thread; run() works on the processors it was made for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "kernels/pace.hpp"
#include "kernels/team.hpp"
#include "os/usage.hpp"
#include "tier/mapping.hpp"

namespace nearfar::bench {

/// Direction in which the far threads copy: from the first to the second.
enum class Copy : unsigned char { far_far, far_near, near_far };

/// The end of one iteration: usage since the thread's start, wall time included, and the time that
/// the hypervisor took from its CPU since then, read at most every 50 ms.
struct Mark {
  os::Usage usage;
  std::uint64_t steal_ns = 0;
};

struct CompeteThread {
  bool far = false;
  int cpu = -1;
  std::uint64_t start_ns = 0;
  std::vector<Mark> marks;
};

/// The span in which all threads ran: from the last start to the first end. It is empty, and the
/// rates are 0, if threads that share a CPU ran one after the other.
struct CompeteRun {
  std::uint64_t from_ns = 0;
  std::uint64_t to_ns = 0;
  double near_bytes_per_s = 0; ///< summed over the near threads, 0 if there are none
  double far_bytes_per_s = 0;
  std::vector<CompeteThread> threads; ///< near ones first
};

/// Sets the span and both rates; an iteration that is partly in the span counts by that fraction.
/// `bytes`: moved by one iteration.
void sum_up(CompeteRun& run, std::size_t bytes);

class CompeteBench {
public:
  CompeteBench(CompeteBench&&) = default; // and no copies

  /// Maps two arrays of `elements` doubles for each thread; each thread touches its own.
  /// Errors: bad_input (no threads, a processor that cannot be used), those of tier::map.
  static Result<CompeteBench> create(Copy copy, const tier::Spec& near, const tier::Spec& far,
                                     std::size_t elements, std::span<const int> near_cpus,
                                     std::span<const int> far_cpus);

  /// `iterations` > 0 of every thread. When the first one has finished, the others end after their
  /// current iteration, because later ones do not count.
  Result<CompeteRun> run(std::size_t iterations);

  /// Bytes that one iteration moves, loads and stores, without write-allocate.
  std::size_t iteration_bytes() const { return 2 * elements_ * sizeof(double); }

  /// Fails (failed_check) unless each destination equals its source.
  Status check() const;

private:
  struct Pair {
    tier::Mapping source;
    tier::Mapping destination;
    kernels::Device* source_device; ///< nullptr where a tier is not paced
    kernels::Device* destination_device;
  };
  CompeteBench(std::size_t elements, std::size_t near_threads, std::vector<int> cpus)
      : elements_(elements), near_threads_(near_threads), cpus_(std::move(cpus)) {}
  Status touch();

  std::size_t elements_;
  std::size_t near_threads_;
  std::vector<int> cpus_; ///< near ones first
  std::vector<Pair> pairs_;
  kernels::Devices devices_;
};

} // namespace nearfar::bench
