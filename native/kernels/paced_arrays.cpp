#include "kernels/paced_arrays.hpp"

#include <algorithm>

namespace nearfar::kernels {

namespace {

Slice part(const Slice& slice, std::size_t first, std::size_t elements) {
  const auto from = [&](double* array) { return array == nullptr ? nullptr : array + first; };
  return {from(slice.a), from(slice.b), from(slice.c), elements, slice.s};
}

struct Bytes {
  std::size_t read = 0;
  std::size_t written = 0;
};

/// Bytes that a block of `bytes` an array charges to each pacer: arrays on one device charge the
/// first of them, so that their delays add up.
std::array<Bytes, 3> cost_of(const ArrayKernel& kernel, std::size_t bytes,
                             const ArrayPacers& pacers) {
  std::array<Bytes, 3> costs;
  for (std::size_t i = 0; i < pacers.size(); ++i) {
    std::size_t first = 0;
    while (pacers[first].device() != pacers[i].device())
      ++first;
    const bool written = kernel.writes_array(i);
    if (kernel.reads_array(i) || (written && kernel.allocates)) costs[first].read += bytes;
    if (written) costs[first].written += bytes;
  }
  return costs;
}

} // namespace

std::uint64_t run_paced(const ArrayKernel& kernel, const Slice& slice, ArrayPacers& pacers) {
  if (std::none_of(pacers.begin(), pacers.end(), [](const Pacer& p) { return p.device(); }))
    return kernel.run(slice);
  for (Pacer& pacer : pacers)
    pacer.start();
  std::uint64_t sum = 0;
  for (std::size_t first = 0; first < slice.elements; first += paced_elements) {
    const std::size_t elements = std::min(paced_elements, slice.elements - first);
    sum += kernel.run(part(slice, first, elements));
    const std::array<Bytes, 3> costs = cost_of(kernel, elements * sizeof(double), pacers);
    for (std::size_t i = 0; i < pacers.size(); ++i)
      if (costs[i].read + costs[i].written > 0) pacers[i].charge(costs[i].read, costs[i].written);
  }
  return sum;
}

} // namespace nearfar::kernels
