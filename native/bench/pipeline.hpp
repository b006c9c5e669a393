// Near threads generate vectors while far threads copy the last finished one to far memory and
// analyze it there, after the independence benchmark of the Oslo thesis.
//
// Two hand-overs, each a binary semaphore that one side releases and the other acquires: the
// generator may not swap its vectors before the copy of the last one is done, and the far side may
// not start before the swap.
//
// Thread safety  one PipelineBench a thread, but for stop(); runs work on the processors it was
//                made for.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "kernels/pace.hpp"
#include "kernels/passes.hpp"
#include "kernels/sparse.hpp"
#include "kernels/team.hpp"
#include "tier/mapping.hpp"

namespace nearfar::bench {

/// Stored elements in each row of the matrix, and their maximum distance from the diagonal.
inline constexpr std::size_t row_elements = 4;
inline constexpr std::size_t row_reach = 512;

/// Results of one iteration; the same for every split of the threads.
struct Finding {
  double change = 0; ///< largest difference between this vector and the one before
  kernels::Analysis analysis;

  bool operator==(const Finding&) const = default;
};

/// Stages of a side.
enum class Stage { generate, generate_idle, transfer, analyse, transfer_idle };

/// One stage of one iteration, by the clock of os::now_ns.
struct Lap {
  Stage stage;
  std::uint64_t began_ns;
  std::uint64_t ended_ns;
};

/// Iterations whose laps are kept.
inline constexpr std::size_t kept_iterations = 6;

/// Times are sums over all iterations, as the first thread of each side saw them. Without a far
/// side, transfer and both idle times are 0.
struct PipelineRun {
  std::uint64_t generate_ns = 0;
  std::uint64_t generate_idle_ns = 0; ///< waiting for the copy to be done
  std::uint64_t transfer_ns = 0;
  std::uint64_t analyse_ns = 0;
  std::uint64_t transfer_idle_ns = 0; ///< the far side waiting for a vector
  std::uint64_t total_ns = 0;
  std::vector<Finding> findings; ///< of each iteration
  std::vector<Lap> near_laps;    ///< of the first iterations, as the first near thread saw them
  std::vector<Lap> far_laps;
  std::vector<kernels::Member> members;
};

class PipelineBench {
public:
  PipelineBench(PipelineBench&&) = default; // and no copies

  /// Maps matrix and vectors near, one vector far, and fills them. Without `far_cpus` nothing is
  /// far. The near tier cannot be paced: its threads gather, and do not know their bytes.
  /// Errors: bad_input (no near thread, no element, more than 2^32 elements, a processor that
  /// cannot be used), those of tier::map.
  static Result<PipelineBench> create(std::size_t elements, const tier::Spec& near,
                                      const tier::Spec& far, std::span<const int> near_cpus,
                                      std::span<const int> far_cpus, std::uint64_t seed);

  /// Generates `iterations` > 0 vectors from the first one on, and analyzes each: on the far side
  /// at the same time, or by the near threads afterwards without far threads.
  /// Errors: os_error (stopped, a thread that cannot be made or pinned).
  Result<PipelineRun> run(std::size_t iterations);
  /// From another thread: a run ends, with an error, after its current iteration.
  void stop() { stopping_->store(true); }

private:
  PipelineBench(std::size_t elements, std::uint64_t seed) : elements_(elements), seed_(seed) {}

  struct Share {
    std::size_t first_chunk;
    std::size_t end_chunk;
  };
  struct Meeting; // what the threads of one run share

  std::size_t chunks() const { return (elements_ - 1) / kernels::chunk_elements + 1; }
  std::size_t far_threads() const { return cpus_.size() - near_threads_; }
  std::size_t first_of(std::size_t chunk) const;
  Share share(std::size_t index, std::size_t parts) const;
  kernels::SparseMatrix matrix() const;
  double* vector(std::size_t index) const;
  double* source() const;
  void fill(const Share& share);
  void generate(std::size_t index, std::size_t iteration, Meeting& meeting);
  void near_side(std::size_t index, PipelineRun& run, Meeting& meeting);
  void far_side(std::size_t index, PipelineRun& run, Meeting& meeting);

  std::size_t elements_;
  std::uint64_t seed_;
  std::unique_ptr<std::atomic<bool>> stopping_ = std::make_unique<std::atomic<bool>>(false);
  std::size_t near_threads_ = 0;
  std::vector<int> cpus_; ///< near ones first
  tier::Mapping starts_;
  tier::Mapping columns_;
  tier::Mapping values_;
  tier::Mapping source_;
  std::array<tier::Mapping, 2> vectors_;
  tier::Mapping far_;
  kernels::Devices devices_;
  kernels::Device* far_device_ = nullptr; ///< where the far tier is paced
};

} // namespace nearfar::bench
