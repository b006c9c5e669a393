// A stencil shared by two memories, after the cooperation benchmark of the Oslo thesis.
//
// An array of rows x columns doubles, each inner element of the next sweep the mean of its eight
// neighbors, the border fixed; or a stack of planes, each element the mean of itself and its six
// neighbors: a plane is then a row here, and its elements columns. The first rows are near, the
// last `far_rows` far; near threads work on near rows, far threads on far rows, and all meet after
// each sweep, when the arrays are swapped.
//
//   direct  the two rows next to the boundary are read across it
//   ghost   each side keeps a copy of the other's row next to the boundary, refreshed between
//           sweeps in the array that the next sweep reads
//
// Thread safety  one StencilBench a thread; run() works on the processors it was made for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "kernels/pace.hpp"
#include "kernels/team.hpp"
#include "tier/mapping.hpp"

namespace nearfar::bench {

enum class StencilVersion : unsigned char { direct, ghost };

enum class StencilKernel : unsigned char { eight, seven };

struct StencilShape {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t far_rows = 0;
  StencilVersion version = StencilVersion::direct;
  StencilKernel kernel = StencilKernel::eight;
  std::size_t width = 0; ///< seven: of a row of a plane; divides columns
};

/// One sweep: the slowest thread of each side, with the refreshing of ghost rows and without
/// waiting; and the time from the last thread's end of the sweep before to the last thread's end of
/// this one.
struct SweepTimes {
  std::uint64_t near_ns = 0;
  std::uint64_t far_ns = 0;
  std::uint64_t total_ns = 0;
};

struct StencilRun {
  std::vector<SweepTimes> sweeps;
  std::vector<kernels::Member> members; ///< near ones first
};

class StencilBench {
public:
  StencilBench(StencilBench&&) = default; // and no copies

  /// Maps both arrays of each side. Errors: bad_input (far rows beyond the array, rows without
  /// threads, a plane that does not consist of whole rows, a CPU that cannot be used), those of
  /// tier::map. A paced tier is charged with the minimum traffic of a sweep: neighbors are cached.
  static Result<StencilBench> create(const StencilShape& shape, const tier::Spec& near,
                                     const tier::Spec& far, std::span<const int> near_cpus,
                                     std::span<const int> far_cpus, std::uint64_t seed);

  /// Sets all elements to their first values, untimed, then sweeps.
  Result<StencilRun> run(std::size_t sweeps);

  /// The same on one thread, a plain loop over whole rows without ghosts, into the same memory. Its
  /// result must equal that of run() to the bit.
  Status run_serially(std::size_t sweeps);

  /// The array after the last run, row by row.
  std::vector<double> values() const;

  /// Depends on the order of all elements, so that exchanged elements are detected.
  std::uint64_t checksum() const;

  /// The first value of an element: in [0, 1), independent of its memory.
  static double first_value(std::uint64_t seed, std::size_t index);

private:
  StencilBench(const StencilShape& shape, std::uint64_t seed) : shape_(shape), seed_(seed) {}

  /// Half-open rows that a thread works on.
  struct Share {
    std::size_t first;
    std::size_t end;
  };
  std::size_t near_rows() const { return shape_.rows - shape_.far_rows; }
  bool shared() const { return shape_.far_rows > 0 && near_rows() > 0; }
  std::size_t ghosts() const { return shared() && shape_.version == StencilVersion::ghost ? 1 : 0; }
  Share share(std::size_t member) const;
  double* own_row(unsigned array, std::size_t row) const;
  double* near_ghost(unsigned array) const;
  double* far_ghost(unsigned array) const;
  const double* row_seen_from(bool far, unsigned array, std::size_t row) const;
  /// A thread's pacers of both sides.
  struct Pacers {
    kernels::Pacer near;
    kernels::Pacer far;
    kernels::Pacer& of(bool is_far) { return is_far ? far : near; }
  };
  Pacers pacers() const { return {kernels::Pacer(near_device_), kernels::Pacer(far_device_)}; }
  void fill(std::size_t member);
  std::size_t sweep_from(std::size_t row, std::size_t end, bool far, unsigned from) const;
  void sweep(const Share& rows, bool far, unsigned from, Pacers& pacers) const;
  void refresh_ghost(std::size_t member, unsigned array, Pacers& pacers) const;
  void sweep_serially(unsigned from) const;

  StencilShape shape_;
  std::uint64_t seed_;
  std::size_t near_threads_ = 0;
  std::vector<int> cpus_;             ///< near ones first
  std::array<tier::Mapping, 2> near_; ///< rows, then the ghost of the first far row
  std::array<tier::Mapping, 2> far_;  ///< the ghost of the last near row, then rows
  kernels::Devices devices_;
  kernels::Device* near_device_ = nullptr; ///< where the tier is paced
  kernels::Device* far_device_ = nullptr;
  unsigned current_ = 0; ///< the array that holds the result
};

} // namespace nearfar::bench
