// The translation look-aside buffers that the CPU reports.
//
// Source         AMD64 Architecture Programmer's Manual, volume 3, appendix E.4 (CPUID functions
//                8000_0005h, 8000_0006h and 8000_0021h); Intel 64 and IA-32 Architectures Software
//                Developer's Manual, volume 2A, CPUID, leaf 18h, and leaf 2 for processors without
//                it.
// Limits         a hypervisor may hide them, or report those of another CPU.
// Thread safety  any thread.
#pragma once

#include <vector>

namespace nearfar::topo {

/// For data, and for pages of 4 KiB.
struct TlbLevel {
  unsigned entries = 0;
  unsigned ways = 0; ///< as many as entries where it is fully associative
};

/// From the one nearest the core; empty if the CPU does not report them.
std::vector<TlbLevel> data_tlb();

} // namespace nearfar::topo
