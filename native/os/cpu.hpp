// Processors: which ones this process may use, and pinning to one.
#pragma once

#include <cstddef>

#include "base/result.hpp"

namespace nearfar::os {

inline constexpr std::size_t cache_line_bytes = 64; ///< on every x86-64 processor so far

/// Pins the calling thread to one processor. Fails with bad_input if the processor is offline or
/// outside the set that this process may use.
Status pin_to_cpu(int cpu);

/// A hint to the CPU that this is a spin loop.
inline void spin_pause() { __builtin_ia32_pause(); }

/// The instruction set the dispatched loops run with: "avx512", "avx2" or "sse2".
const char* vector_isa();

/// Whether the CPU reports a hypervisor (CPUID), and the hypervisor's signature, such as
/// "KVMKVMKVM".
struct Hypervisor {
  bool present = false;
  char signature[13] = "";
};
Hypervisor hypervisor();

} // namespace nearfar::os
