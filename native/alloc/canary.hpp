// Hardening: canaries, the bytes of a block behind the size that was requested. They are written
// when the block is allocated and checked when it is freed, and have the requested size.
//
// Canaries are stored in the memory of the tier: a slow medium is written at each allocation.
#pragma once

#include <cstddef>

namespace nearfar::alloc {

/// Minimum number of bytes that an allocation adds to the requested size.
inline constexpr std::size_t canary_bytes = 32;
inline constexpr std::size_t damaged = static_cast<std::size_t>(-1);

/// Writes the canary behind `size` bytes of a block of `block_bytes`.
void write_canary(void* block, std::size_t block_bytes, std::size_t size);
/// The size that was requested, or `damaged`.
std::size_t read_canary(const void* block, std::size_t block_bytes);

} // namespace nearfar::alloc
