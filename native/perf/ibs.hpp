// Samples of AMD's instruction-based sampling of ops (PMU ibs_op), from PERF_SAMPLE_RAW.
//
// Kernels since Linux 6.2 fill in address, weight and data source of a sample themselves; older
// ones leave only these registers.
// Source         arch/x86/events/amd/ibs.c and arch/x86/include/asm/amd/ibs.h of Linux (layout of
//                the raw data, bits); AMD, PPR for Family 19h, MSRs C001_1033 to C001_1039.
// Hardware       not validated on hardware.
// Input          untrusted.
#pragma once

#include <cstdint>
#include <optional>

#include "perf/data_source.hpp"
#include "perf/fields.hpp"

namespace nearfar::perf {

struct IbsOp {
  DataSource source;
  std::optional<std::uint64_t> address; ///< linear, of the data
  std::uint32_t miss_latency = 0;       ///< cycles from the L1 miss to its data; 0 for a hit
};

/// Empty if `raw` is too short for the registers of an op.
std::optional<IbsOp> decode_ibs_op(ByteSpan raw);

} // namespace nearfar::perf
