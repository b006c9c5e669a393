// Bandwidth of array kernels. Each array may be on another tier; threads are pinned.
//
// Thread safety  one ArrayBench a thread; its repeats run on the team they are given.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "kernels/arrays.hpp"
#include "kernels/pace.hpp"
#include "kernels/team.hpp"
#include "tier/mapping.hpp"

namespace nearfar::probe {

struct ArrayRepeat {
  double seconds = 0;            ///< span of the team
  std::size_t counted_bytes = 0; ///< as in STREAM, without write-allocate
  std::vector<kernels::Member> members;
};

/// Three arrays a, b, c of `elements` doubles with known contents, on which all kernels run.
///
/// Each repeat also computes the expected elements, with which worst_error() compares the arrays.
/// Kernels that store nothing must return the sum of array a: repeat() compares it.
class ArrayBench {
public:
  /// Maps the arrays; each of `cpus` first touches the slice that it will access.
  static Result<ArrayBench> create(const std::array<tier::Spec, 3>& specs, std::size_t elements,
                                   std::span<const int> cpus);

  /// The same over three arrays of the caller, which outlive the bench; each on a line of its
  /// own, each `elements` doubles long. Their pages are not verified: they are the owner's.
  static Result<ArrayBench> over(const std::array<double*, 3>& arrays, std::size_t elements,
                                 std::span<const int> cpus);

  /// Runs one kernel over the arrays, split evenly over `cpus` (non-empty).
  /// Errors: bad_input (unknown kernel or processor), failed_check (read checksum).
  Result<ArrayRepeat> repeat(const char* kernel, std::span<const int> cpus);

  /// Largest relative difference between any element and the closed form.
  double worst_error() const;

  /// Resets all elements to their initial contents, so that values stay in range.
  Status reset(std::span<const int> cpus);

private:
  ArrayBench(const std::array<double*, 3>& data, std::size_t elements)
      : data_(data), elements_(elements) {}
  kernels::Slice slice(std::size_t index, std::size_t parts) const;

  std::array<tier::Mapping, 3> arrays_; ///< empty if the caller owns the arrays
  std::array<double*, 3> data_;
  kernels::Devices devices_;
  std::array<kernels::Device*, 3> device_of_{}; ///< nullptr where a tier is not paced
  std::size_t elements_;
  std::array<double, 3> expected_{};
};

} // namespace nearfar::probe
