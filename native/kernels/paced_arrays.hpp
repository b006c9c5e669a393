// Array kernels on paced tiers: each block is charged to the devices of its arrays.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/arrays.hpp"
#include "kernels/pace.hpp"

namespace nearfar::kernels {

/// Elements of a block: 32 KiB of each array.
inline constexpr std::size_t paced_elements = 4096;

/// Pacers of the arrays a, b and c, in this order. Arrays on the same tier have the same device.
using ArrayPacers = std::array<Pacer, 3>;

/// Runs a kernel in blocks; if no array is paced, the whole slice at once. Charges write-allocate
/// reads, too. Returns the result of the kernel.
std::uint64_t run_paced(const ArrayKernel& kernel, const Slice& slice, ArrayPacers& pacers);

} // namespace nearfar::kernels
