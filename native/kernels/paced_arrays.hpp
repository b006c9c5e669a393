// Array kernels on paced tiers: block by block, each charged to the devices its arrays lie on.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/arrays.hpp"
#include "kernels/pace.hpp"

namespace nearfar::kernels {

/// Elements of a block: 32 KiB of each array.
inline constexpr std::size_t paced_elements = 4096;

/// Of the arrays a, b and c, in this order; those on one tier have pacers of one device.
using ArrayPacers = std::array<Pacer, 3>;

/// Runs a kernel; the whole slice at once where nothing is paced. Lines that stores allocate are
/// read from the device too. Returns what the kernel does.
std::uint64_t run_paced(const ArrayKernel& kernel, const Slice& slice, ArrayPacers& pacers);

} // namespace nearfar::kernels
